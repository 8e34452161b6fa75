"""Level B on a real API server: the policy pins each rank of a gang while its pod is born."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from clusters.manifests import gang, names
from clusters.manifests.adapters import born_pinned
from clusters.manifests.patches import pinned_node
from clusters.manifests.values import (
    ContainerValues,
    GangValues,
    Identity,
    Json,
    PodValues,
)
from tests.contract.objects import wait_for
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(120)]

TEAM = "team-vision"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_numbers = itertools.count(1)


@pytest.fixture
def plane(kube_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane whose administrator has applied policy and binding."""
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.create(body)
    probe_until_active(kube_plane)
    yield kube_plane
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.delete(body["kind"], "", born_pinned.NAME)


def identity_of(name: str) -> Identity:
    """The first attempt of a run of the vision team."""
    return Identity(
        name=name,
        namespace=TEAM,
        domain=names.DOMAIN,
        installation="i1",
        run=name,
        attempt=1,
        epoch=1,
        tenant="vision",
    )


def gang_job(*, workers: int, plan: list[str], affinity: Json | None = None) -> Json:
    """A Job as the driver creates it, opened at once."""
    name = f"m-pinned{next(_numbers)}-a1"
    container = ContainerValues(image="example.org/train:1", env={"SIM_RUN_S": "600"})
    pod = PodValues(container=container, accelerator_resource="nvidia.com/gpu", gpus=1, grace_s=1)
    values = GangValues(
        identity=identity_of(name),
        pod=pod,
        workers=workers,
        is_gang=True,
        restart_policy="Never",
        backoff_limit=0,
        ttl_s=None,
        plan=tuple(plan),
        is_born_pinned=True,
    )
    body = gang.job(values)
    body["spec"]["suspend"] = False
    if affinity:
        body["spec"]["template"]["spec"]["affinity"] = affinity
    return body


def probe_until_active(plane: ControlPlane) -> None:
    """A policy takes some seconds to reach every request."""

    def is_active() -> bool:
        (pod,) = pods_of(plane, gang_job(workers=1, plan=gpu_nodes(plane)[:1]), 1)
        return not names.is_gated(pod, names.DOMAIN)

    wait_for(is_active, "the policy is active", timeout_s=30)


def gpu_nodes(plane: ControlPlane) -> list[str]:
    """Names of nodes with whole GPUs."""
    nodes = plane.admin.items("Node")
    return sorted(node["metadata"]["name"] for node in nodes if "nvidia.com/gpu" in node["status"]["allocatable"])


def pods_of(plane: ControlPlane, body: Json, count: int, *, bound: bool = False) -> list[Json]:
    """Create the Job and return its pods by rank, once all are there (and, if asked, bound)."""
    name = plane.admin.create(body)["metadata"]["name"]

    def arrived() -> list[Json] | None:
        pods = plane.admin.items("Pod", TEAM, labels=f"{names.JOB_NAME_LABEL}={name}")
        is_whole = len(pods) == count and (not bound or all(pod["spec"].get("nodeName") for pod in pods))
        return pods if is_whole else None

    pods = wait_for(arrived, f"{count} pods of {name}", timeout_s=30)
    return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"][names.INDEX_LABEL]))


def terms_of(pod: Json) -> list[dict[str, Any]]:
    terms: list[dict[str, Any]] = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def test_each_rank_is_born_at_its_node_without_a_gate_or_a_plan(plane: ControlPlane) -> None:
    plan = gpu_nodes(plane)[:4][::-1]

    pods = pods_of(plane, gang_job(workers=4, plan=plan), 4, bound=True)

    assert [pod["spec"]["nodeName"] for pod in pods] == plan
    assert [pinned_node(pod) for pod in pods] == plan
    for pod in pods:
        assert not pod["spec"].get("schedulingGates")
        assert born_pinned.plan_key(names.DOMAIN) not in pod["metadata"]["annotations"]


@pytest.mark.parametrize("terms", [1, 3, born_pinned.TERMS_MAX])
def test_every_term_that_the_template_brings_gets_the_node(plane: ControlPlane, terms: int) -> None:
    (node,) = gpu_nodes(plane)[:1]
    brought = [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": [f"linux{index or ''}"]}]}
        for index in range(terms)
    ]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": brought}}}

    (pod,) = pods_of(plane, gang_job(workers=1, plan=[node], affinity=affinity), 1)

    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    assert terms_of(pod) == [{**term, "matchFields": [field]} for term in brought]


@pytest.mark.parametrize(
    "affinity",
    [
        {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    }
                ]
            }
        },
    ],
    ids=["none of nodes", "none required"],
)
def test_other_wishes_of_the_template_stay(plane: ControlPlane, affinity: Json) -> None:
    (node,) = gpu_nodes(plane)[:1]

    (pod,) = pods_of(plane, gang_job(workers=1, plan=[node], affinity=affinity), 1)

    assert pinned_node(pod) == node
    for kind, wish in affinity.items():
        kept = pod["spec"]["affinity"][kind]
        assert {key: kept[key] for key in wish if wish[key]} == {key: wish[key] for key in wish if wish[key]}


def test_a_node_that_the_template_names_itself_is_no_way_out(plane: ControlPlane) -> None:
    planned, wished = gpu_nodes(plane)[:2]
    field = {"key": "metadata.name", "operator": "In", "values": [wished]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}

    (pod,) = pods_of(plane, gang_job(workers=1, plan=[planned], affinity=affinity), 1)

    (term,) = terms_of(pod)
    assert [entry["values"] for entry in term["matchFields"]] == [[wished], [planned]]  # both must hold: it waits


def test_a_pod_with_more_terms_than_the_policy_can_pin_keeps_its_gate(plane: ControlPlane) -> None:
    brought = [{"matchExpressions": [{"key": f"k{index}", "operator": "Exists"}]} for index in range(9)]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": brought}}}

    (pod,) = pods_of(plane, gang_job(workers=1, plan=gpu_nodes(plane)[:1], affinity=affinity), 1)

    assert names.is_gated(pod, names.DOMAIN)
    assert terms_of(pod) == brought


def test_a_rank_that_the_plan_does_not_name_is_refused_with_a_reason(plane: ControlPlane) -> None:
    name = plane.admin.create(gang_job(workers=2, plan=gpu_nodes(plane)[:1]))["metadata"]["name"]

    def refusal() -> str | None:
        events = plane.admin.items("Event", TEAM)
        mine = [each for each in events if each["involvedObject"]["name"] == name and each["reason"] == "FailedCreate"]
        return mine[0]["message"] if mine else None

    message = wait_for(refusal, "the refusal is told", timeout_s=30)
    assert message.startswith("Error creating")
    assert born_pinned.NAME in message


def test_what_the_server_stores_has_the_fingerprint_of_what_was_sent(plane: ControlPlane) -> None:
    sent = {body["kind"]: born_pinned.fingerprint(body, names.DOMAIN) for body in born_pinned.objects(names.DOMAIN)}

    stored = {
        kind: born_pinned.fingerprint({**plane.admin.items(kind)[0], "kind": kind}, names.DOMAIN) for kind in sent
    }

    assert stored == sent


def test_a_pod_that_a_tenant_makes_with_a_plan_is_left_alone(plane: ControlPlane) -> None:
    body = gang_job(workers=1, plan=gpu_nodes(plane)[:1])
    template = body["spec"]["template"]
    annotations = {**template["metadata"]["annotations"], names.INDEX_LABEL: "0"}
    pod = plane.admin.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"tenant{next(_numbers)}", "namespace": TEAM, "annotations": annotations},
            "spec": template["spec"],
        }
    )

    assert names.is_gated(pod, names.DOMAIN)
    assert "affinity" not in pod["spec"]


def test_without_the_policy_every_pod_waits_at_its_gate(kube_plane: ControlPlane) -> None:
    def are_gated() -> bool:
        pods = pods_of(kube_plane, gang_job(workers=2, plan=gpu_nodes(kube_plane)[:2]), 2)
        return all(names.is_gated(pod, names.DOMAIN) for pod in pods)

    wait_for(are_gated, "the policy of the tests before is forgotten", timeout_s=30)
