"""Each check by itself: what it makes of an answer."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusters.manifests.adapters import born_pinned
from clusters.models import Severity
from clusters.probe import access, policy, server, supply
from clusters.probe.supply import Machine, Selector
from tests.probe.tokens import living, token

DOMAIN = "muster.internal"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("v1.30.0", Severity.OK),
        ("v1.36.3+simulated", Severity.OK),
        ("v1.31.4-gke.1183000", Severity.OK),
        ("v2.0.1", Severity.OK),
        ("v1.29.14", Severity.PROBLEM),
        ("v1.9.7", Severity.PROBLEM),
        ("devel", Severity.UNKNOWN),
        ("", Severity.UNKNOWN),
    ],
)
def test_a_version_is_compared_by_its_numbers(text: str, severity: Severity) -> None:
    assert server.version({"gitVersion": text}).severity == severity


@pytest.mark.parametrize(
    ("told", "seconds", "severity"),
    [
        ("Tue, 01 Dec 2026 12:00:00 GMT", 0, Severity.OK),
        ("Tue, 01 Dec 2026 11:59:59 GMT", 0, Severity.OK),  # it may have been the end of that second
        ("Tue, 01 Dec 2026 12:00:06 GMT", 4, Severity.OK),  # the answer took two seconds
        ("Tue, 01 Dec 2026 12:00:08 GMT", 6, Severity.WARNING),
        ("Tue, 01 Dec 2026 11:59:30 GMT", -29, Severity.WARNING),
    ],
)
def test_only_what_the_way_cannot_explain_is_clock_skew(told: str, seconds: int, severity: Severity) -> None:
    found = server.clock_skew(told, NOON, NOON + timedelta(seconds=2))

    assert (found.numbers["seconds"], found.severity) == (seconds, severity)


@pytest.mark.parametrize("told", ["", "yesterday", "Tue, 01 Dec 2026 12:00:00"])
def test_a_server_without_a_clock_is_not_known_to_be_wrong(told: str) -> None:
    assert server.clock_skew(told, NOON, NOON).severity == Severity.UNKNOWN


def test_other_engines_are_told_by_their_groups() -> None:
    known = ["batch/v1", "kueue.x-k8s.io/v1beta2", "scheduling.run.ai/v2alpha2", "scheduling.k8s.io/v1"]

    assert server.engines(known).numbers == {"found": ["Kueue", "KAI"]}


@pytest.mark.parametrize(
    ("days", "renews", "kind", "severity"),
    [
        (30, None, "good", Severity.OK),
        (8, False, "good", Severity.OK),
        (6, False, "short", Severity.WARNING),
        (6, None, "short", Severity.WARNING),
        (6, True, "good", Severity.OK),
        (-1, True, "over", Severity.PROBLEM),
    ],
)
def test_a_token_that_ends_soon_is_warned_of_unless_it_is_renewed(
    days: int, renews: bool | None, kind: str, severity: Severity
) -> None:
    found = access.token(living(NOON - DAY, NOON + days * DAY), NOON, renews=renews)

    assert (found.numbers["is"], found.severity) == (kind, severity)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "opaque"),
        ("simulated", "opaque"),
        ("a.b.c", "opaque"),
        ("a.bnVsbA.c", "opaque"),  # null
        ("a.e30.c", "endless"),  # {}
        (token(exp="soon"), "endless"),
        (token(exp=True), "endless"),
        (token(exp=1e300), "endless"),
    ],
)
def test_a_token_of_any_shape_is_read_without_harm(text: str, kind: str) -> None:
    assert access.token(text, NOON).numbers["is"] == kind
    assert not access.is_due(text, NOON)


def test_no_part_of_a_token_stands_in_its_finding() -> None:
    text = living(NOON, NOON + DAY)
    shown = repr(access.token(text, NOON))

    assert not any(part in shown for part in text.split("."))


@pytest.mark.parametrize(
    ("hours", "due"), [(9, False), (8.1, False), (7.9, True), (0.1, True), (0, False), (-1, False)]
)
def test_a_token_is_due_in_the_last_third_of_its_life(hours: float, due: bool) -> None:
    ends_at = NOON + timedelta(hours=hours)

    assert access.is_due(living(ends_at - DAY, ends_at), NOON) is due


def stored() -> dict[str, Any]:
    """Policy and binding as a server returns them."""
    bodies = copy.deepcopy(born_pinned.objects(DOMAIN))
    for body in bodies:
        body["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 1}
    return {body["kind"]: body for body in bodies}


def test_policy_and_binding_as_we_made_them_are_in_place() -> None:
    found = policy.judge(stored(), DOMAIN)

    assert (found.severity, found.numbers["is"]) == (Severity.OK, "in_place")


def test_a_policy_for_other_names_is_not_ours() -> None:
    assert policy.judge(stored(), "other.example").numbers["is"] == "altered"


@pytest.mark.parametrize("gone", ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"])
def test_half_of_it_is_not_relied_on(gone: str) -> None:
    found = policy.judge({**stored(), gone: None}, DOMAIN)

    assert (found.severity, found.numbers) == (Severity.WARNING, {"is": "altered", "kinds": [gone]})


def test_a_word_that_was_changed_makes_it_another_policy() -> None:
    bodies = stored()
    bodies["MutatingAdmissionPolicy"]["spec"]["failurePolicy"] = "Ignore"
    bodies["MutatingAdmissionPolicyBinding"]["spec"]["matchResources"] = {
        "namespaceSelector": {"matchLabels": {"a": "b"}}
    }

    assert policy.judge(bodies, DOMAIN).numbers["kinds"] == list(bodies)


def test_none_of_it_is_missing() -> None:
    assert policy.judge(dict.fromkeys(stored()), DOMAIN).numbers == {"is": "missing"}


H100 = Selector("nvidia.com/gpu", "nvidia.com/gpu.product", "H100")
PLAIN = Machine({}, {}, [])
NETWORK_ONLY = Machine({}, {"rdma/hca": 8}, [])


def machine(product: str = "H100", *, rack: str = "r1", tainted: bool = True, **extended: int) -> Machine:
    devices = extended or {"nvidia.com/gpu": 8}
    labels = {"nvidia.com/gpu.product": product, "t/rack": rack}
    taints = [f"{DOMAIN}/dedicated"] if tainted else ["nvidia.com/gpu"]
    return Machine({key: value for key, value in labels.items() if value}, devices, taints)


def test_nodes_without_accelerators_are_left_out() -> None:
    odd = Machine({}, {"example.com/asic": 4}, [])
    selector = Selector("example.com/asic", "kind", "asic")

    assert supply.with_accelerators([PLAIN, NETWORK_ONLY, machine(), odd], [H100]) == [machine()]
    assert supply.with_accelerators([odd], [selector]) == [odd]
    assert supply.with_accelerators([Machine({}, {"nvidia.com/gpu": 0}, [])], [H100]) == []


def test_devices_that_no_flavor_takes_are_told_by_kind_and_product() -> None:
    sliced = Machine({"nvidia.com/gpu.product": "H100"}, {"nvidia.com/mig-1g.10gb": 7}, [])
    found = supply.accelerators([machine(), machine("B200"), machine("B200"), machine(""), sliced], [H100])

    assert (found.severity, found.numbers["unknown"], found.numbers["nodes"]) == (Severity.WARNING, 4, 5)
    assert found.numbers["kinds"] == [
        ["nvidia.com/gpu", "B200", 2],
        ["nvidia.com/gpu", "", 1],
        ["nvidia.com/mig-1g.10gb", "H100", 1],
    ]


def test_a_fleet_that_is_known_is_fine_and_one_without_gpus_is_not() -> None:
    assert supply.accelerators([machine()], [H100]).severity == Severity.OK
    assert supply.accelerators([], [H100]).severity == Severity.WARNING


def test_a_level_is_covered_when_every_gpu_node_has_its_label() -> None:
    levels = [("rack", "t/rack"), ("zone", "t/zone")]
    machines = [machine() for _ in range(199)] + [machine(rack="")]

    assert supply.topology(machines[:199], levels[:1]).severity == Severity.OK
    found = supply.topology(machines, levels)
    assert found.severity == Severity.WARNING
    assert found.numbers["levels"] == [["rack", "t/rack", 99], ["zone", "t/zone", 0]]
    assert supply.topology(machines, []).severity == Severity.OK
    assert supply.topology([], levels).severity == Severity.UNKNOWN


def test_only_our_own_taint_keeps_others_away() -> None:
    assert supply.taint([machine()], DOMAIN).severity == Severity.OK
    found = supply.taint([machine(), machine(tainted=False)], DOMAIN)
    assert (found.severity, found.numbers["tainted"], found.numbers["nodes"]) == (Severity.WARNING, 1, 2)
