"""A release pins a pod and opens its gate in one step, whatever the template brought along."""

import copy
from typing import Any

import pytest

from clusters.manifests import names, patches
from tests.manifests import json_patch

DOMAIN = "muster.internal"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
A100 = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A100"]}]}
H100 = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H100"]}]}
NODE_A = {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": A100}]}
SPREAD: dict[str, Any] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}


def pod(affinity: Any = None, gates: tuple[str, ...] = ("muster.internal/placement",)) -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingGates": [{"name": gate} for gate in gates]}
    return {
        "metadata": {"name": "m-x-a1-0-abcde", "uid": "u1"},
        "spec": spec if affinity is None else {**spec, "affinity": affinity},
    }


def released(given: dict[str, Any]) -> dict[str, Any]:
    after: dict[str, Any] = json_patch.apply(given, patches.release(given, "node-a", DOMAIN))["spec"]
    return after


def terms_of(spec: dict[str, Any]) -> Any:
    return spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_a_plain_pod_is_pinned_and_its_gate_opened() -> None:
    assert released(pod()) == {
        "schedulingGates": [],
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [NODE_A]}]}}},
    }


@pytest.mark.parametrize("affinity", [SPREAD, {"nodeAffinity": PREFERRED}, {**SPREAD, "nodeAffinity": PREFERRED}])
def test_affinity_without_required_terms_is_kept_beside_the_pin(affinity: dict[str, Any]) -> None:
    after = released(pod(affinity))["affinity"]
    assert after["nodeAffinity"].pop(REQUIRED) == {"nodeSelectorTerms": [{"matchFields": [NODE_A]}]}
    assert {key: value for key, value in after.items() if value} == affinity


def test_every_alternative_of_the_template_gets_the_node() -> None:
    after = released(pod({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [A100, H100]}}}))
    assert terms_of(after) == [{**A100, "matchFields": [NODE_A]}, {**H100, "matchFields": [NODE_A]}]


def test_fields_that_a_term_has_are_kept() -> None:
    other = {"key": "metadata.name", "operator": "NotIn", "values": ["node-b"]}
    after = released(pod({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [other]}]}}}))
    assert terms_of(after) == [{"matchFields": [other, NODE_A]}]


def test_a_gate_of_somebody_else_stays() -> None:
    given = pod(gates=("example.com/first", "muster.internal/placement", "example.com/last"))
    assert released(given)["schedulingGates"] == [{"name": "example.com/first"}, {"name": "example.com/last"}]


@pytest.mark.parametrize("gates", [(), ("example.com/first",), ("other.domain/placement",)])
def test_a_pod_that_does_not_wait_at_our_gate_is_not_released(gates: tuple[str, ...]) -> None:
    with pytest.raises(patches.NotGatedError):
        patches.release(pod(gates=gates), "node-a", DOMAIN)
    assert not names.is_gated(pod(gates=gates), DOMAIN)


def test_a_pod_without_any_gates_field_is_not_gated() -> None:
    assert not names.is_gated({"metadata": {}, "spec": {}}, DOMAIN)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("metadata", "uid"), "u2"), (("spec", "schedulingGates"), []), (("spec", "schedulingGates"), [{"name": "x/y"}])],
)
def test_a_release_fails_when_the_pod_changed_meanwhile(path: tuple[str, str], value: Any) -> None:
    operations = patches.release(pod(), "node-a", DOMAIN)
    changed = copy.deepcopy(pod())
    changed[path[0]][path[1]] = value
    with pytest.raises(json_patch.TestFailedError):
        json_patch.apply(changed, operations)


def test_a_release_is_seen_on_the_pod() -> None:
    two = pod({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [A100, H100]}}})
    assert patches.pinned_node(two) is None
    assert patches.pinned_node({"spec": released(two)}) == "node-a"
    assert patches.pinned_node({"spec": released(pod())}) == "node-a"
    assert patches.pinned_node({"spec": {}}) is None


def test_a_job_is_opened_only_when_it_is_the_one_and_still_suspended() -> None:
    job = {"metadata": {"uid": "u1"}, "spec": {"suspend": True}}
    assert json_patch.apply(job, patches.unsuspend("u1"))["spec"] == {"suspend": False}
    for other in ({**job, "metadata": {"uid": "u2"}}, {**job, "spec": {"suspend": False}}):
        with pytest.raises(json_patch.TestFailedError):
            json_patch.apply(other, patches.unsuspend("u1"))


def test_a_deployment_is_scaled_only_when_it_is_the_one() -> None:
    deployment = {"metadata": {"uid": "u1"}, "spec": {"replicas": 3}}
    assert json_patch.apply(deployment, patches.scale("u1", 5))["spec"] == {"replicas": 5}
    with pytest.raises(json_patch.TestFailedError):
        json_patch.apply(deployment, patches.scale("u2", 5))
