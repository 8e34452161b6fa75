"""The pure rules of the tree, without a database."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.policy.checks import claim, first_excess, is_too_deep, whole_gpus
from quotas.policy.document import QuotaNode, QuotaTreeRows
from quotas.policy.limits import MAX_DEPTH, MAX_GPUS

H100 = 1


def node(name: str, parent: str | None = None, *, is_queue: bool = False) -> QuotaNode:
    return QuotaNode(
        id=name, pk=0, name=name, parent=parent, depth=0, organization_id=1, version=1, team_id=1 if is_queue else None
    )


def tree(nominal: dict[str, int], *nodes: QuotaNode) -> QuotaTreeRows:
    return QuotaTreeRows(nodes, {(name, H100): gpus for name, gpus in nominal.items()}, {}, {})


NODES = (node("acme"), node("research", "acme"), node("vision", "research"), node("speech", "research"))


def test_children_that_fill_their_parent_exactly_are_right() -> None:
    assert first_excess(tree({"research": 10, "vision": 6, "speech": 4}, *NODES), "vision", H100) is None


def test_one_gpu_too_many_is_found_with_both_numbers() -> None:
    excess = first_excess(tree({"research": 10, "vision": 7, "speech": 4}, *NODES), "vision", H100)

    assert excess is not None
    assert (excess.parent.name, excess.children, excess.nominal) == ("research", 11, 10)


def test_a_cohort_without_a_quota_passes_its_childrens_claims_on() -> None:
    document = tree({"acme": 10, "vision": 7, "speech": 4}, *NODES)

    excess = first_excess(document, "vision", H100)

    assert claim(document, document.by_id["research"], H100) == 11
    assert excess is not None
    assert excess.parent.name == "acme"


def test_a_parent_lowered_below_its_children_is_found_at_the_parent() -> None:
    excess = first_excess(tree({"research": 5, "vision": 6}, *NODES), "research", H100)

    assert excess is not None
    assert (excess.children, excess.nominal) == (6, 5)


def test_another_flavor_of_the_parent_does_not_matter() -> None:
    assert first_excess(tree({"research": 1, "vision": 6}, *NODES), "vision", H100 + 1) is None


def test_an_edit_is_tried_on_a_copy() -> None:
    document = tree({"research": 10, "vision": 6}, *NODES)

    assert document.with_nominal(("vision", H100), 11).nominal["vision", H100] == 11
    assert ("vision", H100) not in document.with_nominal(("vision", H100), None).nominal
    assert document.nominal["vision", H100] == 6


def test_the_deepest_cohort_takes_no_cohort_below_it() -> None:
    chain = [node("c0")] + [node(f"c{n}", f"c{n - 1}") for n in range(1, MAX_DEPTH)]

    assert is_too_deep(tree({}, *chain), f"c{MAX_DEPTH - 1}")
    assert not is_too_deep(tree({}, *chain), f"c{MAX_DEPTH - 2}")
    assert not is_too_deep(tree({}, *chain), None)


@pytest.mark.parametrize("value", [0, 1, MAX_GPUS, "0", "64", "0064", "1000000"])
def test_whole_numbers_within_the_limit_are_taken(value: object) -> None:
    assert whole_gpus(value) == int(str(value))


# BC-11: an enormous amount meant as "no limit" must be refused, never wrapped, rounded or read as 0.
REFUSED = [
    "1E",
    "9223372036854775807",
    "9223372036854775807.001",
    "1e30",
    "1000001",
    "-1",
    "1.5",
    "1.0",
    "",
    " ",
    " 8",
    "8 ",
    "+8",
    "1_000",
    "1,000",
    "٨",
    "\uff18",  # full-width 8
    "²",
    "unlimited",
    "NaN",
    "0x10",
    "8\x00",
    "9" * 5000,
]


@pytest.mark.parametrize("text", REFUSED)
def test_anything_but_plain_digits_is_refused(text: str) -> None:
    assert whole_gpus(text) is None


@pytest.mark.parametrize("value", [-1, MAX_GPUS + 1, 2**63, 1.0, 1.5, float("inf"), True, None, [], {}, [8], b"8"])
def test_anything_but_whole_numbers_is_refused(value: object) -> None:
    assert whole_gpus(value) is None


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans()))
def test_what_is_taken_is_always_within_the_limit(value: object) -> None:
    gpus = whole_gpus(value)

    assert gpus is None or (type(gpus) is int and 0 <= gpus <= MAX_GPUS)
