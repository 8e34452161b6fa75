"""The objects of a team's space, and how a difference is told and mended."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.manifests import drift, rights, spaces
from clusters.manifests.spaces import RungValues, SpaceValues
from clusters.manifests.values import Json
from tests.manifests.json_patch import apply

GOLDEN = Path(__file__).parent / "golden" / "space.json"
DOMAIN = "muster.internal"
VALUES = SpaceValues(
    domain=DOMAIN,
    installation="default",
    team="vision",
    namespace="team-vision",
    gpus={"nvidia.com/gpu": 24, "nvidia.com/mig-1g.10gb": 2_000},
    callers=("ingress-nginx",),
    egress=("0.0.0.0/0", "::/0", "10.20.0.0/16"),
)
KINDS = ("Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy")


def rendered() -> list[Json]:
    rung = RungValues(name="research", value=10_000, description="Experiments")
    return [*spaces.objects(VALUES), spaces.priority_class(rung, domain=DOMAIN, installation="default")]


def stored(body: Json, **changes: Any) -> Json:
    """As a server gives it back in a list."""
    found = copy.deepcopy({key: value for key, value in body.items() if key not in ("kind", "apiVersion")})
    found["metadata"] |= {"uid": "u1", "resourceVersion": "7"}
    return found | {"status": {"phase": "Active"}} | changes


def test_a_space_is_what_its_golden_file_says() -> None:
    assert rendered() == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("body", rendered(), ids=lambda body: body["kind"])
def test_what_a_server_adds_is_no_difference(body: Json) -> None:
    found = stored(body)
    found["metadata"]["labels"]["kubernetes.io/metadata.name"] = "team-vision"
    found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
    assert drift.judge(body, found, DOMAIN).state == "in_step"


def test_nothing_of_that_name_is_missing() -> None:
    assert drift.judge(rendered()[0], None, DOMAIN).state == "missing"


def test_a_wish_that_changed_is_told_from_an_object_that_was_changed() -> None:
    old, new = spaces.quota(VALUES), spaces.objects(SpaceValues(**{**_fields(), "gpus": {"nvidia.com/gpu": 8}}))[1]
    found = stored(drift.stamped(old, DOMAIN))
    assert drift.judge(new, found, DOMAIN).state == "outdated"

    found["spec"]["hard"]["pods"] = "0"
    judged = drift.judge(new, found, DOMAIN)

    assert judged.state == "altered"
    assert {each.path: (each.wanted, each.found) for each in judged.differences} == {
        "spec.hard.pods": ("", "0"),
        "spec.hard.requests.nvidia.com/gpu": ("8", "24"),
        "spec.hard.requests.nvidia.com/mig-1g.10gb": ("", "2k"),
    }


def test_an_object_without_our_mark_was_made_by_somebody_else() -> None:
    body = rendered()[1]
    found = stored(body, spec={"hard": {}})
    del found["metadata"]["annotations"]
    assert drift.judge(body, found, DOMAIN).state == "altered"


@pytest.mark.parametrize("body", rendered()[:4], ids=KINDS)
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "labelled"])
def test_the_patch_brings_any_object_in_step_and_leaves_what_is_not_ours(body: Json, bare: bool) -> None:
    found: Json = {"metadata": {"name": body["metadata"]["name"], "uid": "u1"}, "spec": {"strange": [1]}}
    if "namespace" in body["metadata"]:
        found["metadata"]["namespace"] = body["metadata"]["namespace"]
    if not bare:
        labels = {"cost-center": "12", "muster.internal/x": "1", "app.kubernetes.io/managed-by": "helm"}
        found["metadata"] |= {"labels": labels, "annotations": {"note": "kept"}}

    mended = apply(found, drift.mend(body, found, DOMAIN))

    assert drift.judge(body, mended, DOMAIN).state == "in_step"
    assert bare or (mended["metadata"]["labels"]["cost-center"], mended["metadata"]["annotations"]["note"]) == (
        "12",
        "kept",
    )
    # A namespace's spec is the server's.
    assert (mended["spec"] == found["spec"]) == (body["kind"] == "Namespace")


def test_a_class_is_made_anew_for_its_value_and_patched_for_its_words() -> None:
    body = rendered()[4]
    assert drift.judge(body, stored(body, value=5), DOMAIN).is_recreated
    assert drift.judge(body, stored(body, preemptionPolicy="PreemptLowerPriority"), DOMAIN).is_recreated
    assert not drift.judge(body, stored(body, description="other"), DOMAIN).is_recreated
    assert [each.path for each in drift.judge(body, stored(body, globalDefault=True), DOMAIN).differences] == [
        "globalDefault"
    ]


def test_a_name_that_belongs_to_kubernetes_is_refused() -> None:
    with pytest.raises(ValueError, match="belongs to Kubernetes"):
        spaces.priority_class(RungValues(name="system-node-critical", value=1), domain=DOMAIN, installation="i")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (8, "8"), (999, "999"), (1_000, "1k"), (2_008, "2008"), (2_000_000, "2M")]
)
def test_counts_are_written_as_a_server_writes_them(count: int, text: str) -> None:
    assert spaces.canonical(count) == text


@given(nominal=st.integers(0, 1_000_000), used=st.integers(0, 1_000_000))
def test_a_whole_turnover_of_what_a_team_holds_fits_into_its_quota(nominal: int, used: int) -> None:
    # All that it holds is going, and all that it may hold is coming.
    assert spaces.most_gpus(nominal, used) >= used + nominal


def test_a_team_without_quota_may_have_no_gpu_at_all() -> None:
    assert spaces.most_gpus(0, 0) == 0


def test_the_rights_of_keeping_are_tied_to_names_and_bind_nothing() -> None:
    bodies = rights.for_spaces(["team-vision"], ["research"])
    rules = [rule for body in bodies for rule in body.get("rules", ())]
    named = [rule["resourceNames"] for rule in rules if _is_wide(rule) and {"patch", "delete"} & set(rule["verbs"])]

    assert named == [["team-vision"], ["research"]]
    assert not [rule for rule in rules if {"rolebindings", "clusterroles", "secrets", "*"} & set(rule["resources"])]


def _is_wide(rule: Json) -> bool:
    return bool({"namespaces", "priorityclasses"} & set(rule["resources"]))


def _fields() -> dict[str, Any]:
    return {name: getattr(VALUES, name) for name in VALUES.__slots__}
