"""Where pods go, and why some go nowhere."""

from typing import Any

import pytest

from tests.clusters_running import MERGE_PATCH, SimulatedCluster
from tests.simulated.conftest import GATE, Corner, pin, pod

pytestmark = pytest.mark.timeout(60)


def refusal(corner: Corner) -> str:
    return corner.cluster.wait_for(lambda: corner.events("FailedScheduling"), "a refusal")[-1]


def node_of(corner: Corner, name: str) -> str:
    return str(corner.get("pods", name)["spec"].get("nodeName", ""))


def change_node(cluster: SimulatedCluster, name: str, change: dict[str, Any]) -> None:
    code, answer = cluster.request("PATCH", f"/api/v1/nodes/{name}", change, kind=MERGE_PATCH)
    assert code == 200, answer


def test_labels_and_annotations_of_a_pod_place_nothing(corner: Corner) -> None:
    body = pod("one", gpus=9)
    body["metadata"]["annotations"] = {"muster.internal/plan": "node-0", "muster.internal/node": "node-0"}
    body["metadata"]["labels"]["muster.internal/node"] = "node-0"
    corner.create("pods", body)

    assert refusal(corner).startswith("0/4 nodes are available: 4 Insufficient nvidia.com/gpu. no new claims")
    assert node_of(corner, "one") == ""
    assert corner.condition("pods", "one", "PodScheduled")["reason"] == "Unschedulable"


def test_a_foreign_gate_keeps_a_pod_waiting(corner: Corner) -> None:
    gates = [*GATE["schedulingGates"], {"name": "foreign.example/hold"}]
    corner.create("pods", pod("one", schedulingGates=gates))
    corner.patch("pods", "one", [{"op": "remove", "path": "/spec/schedulingGates/0"}])

    assert corner.condition("pods", "one", "PodScheduled")["reason"] == "SchedulingGated"
    corner.patch("pods", "one", [{"op": "remove", "path": "/spec/schedulingGates/0"}])
    corner.wait_phases(["Running"])


def test_a_node_selector_chooses_a_rack(corner: Corner) -> None:
    corner.create("pods", pod("one", nodeSelector={"muster.example/rack": "node-rack-1"}))
    corner.wait_phases(["Running"])

    assert node_of(corner, "one") in ("node-2", "node-3")


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}, True),
        ({"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["NVIDIA-H100-80GB-HBM3"]}, False),
        ({"key": "nvidia.com/gpu.count", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "nvidia.com/gpu.count", "operator": "Lt", "values": ["7"]}, False),
        ({"key": "missing", "operator": "DoesNotExist"}, True),
        ({"key": "missing", "operator": "Exists"}, False),
    ],
)
def test_required_affinity_is_kept(corner: Corner, expression: dict[str, Any], fits: bool) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    corner.create("pods", pod("one", affinity=affinity))

    if fits:
        corner.wait_phases(["Running"])
    else:
        assert "4 node(s) didn't match Pod's node affinity/selector" in refusal(corner)


def test_a_cordoned_node_takes_nothing_new(corner: Corner) -> None:
    change_node(corner.cluster, "node-0", {"spec": {"unschedulable": True}})
    try:
        corner.create("pods", pod("one", affinity=pin("node-0")))
        assert "1 node(s) were unschedulable" in refusal(corner)
        node = corner.cluster.request("GET", "/api/v1/nodes/node-0")[1]
        assert node["spec"]["taints"][0]["key"] == "node.kubernetes.io/unschedulable"
    finally:
        change_node(corner.cluster, "node-0", {"spec": {"unschedulable": None}})
    corner.wait_phases(["Running"])


def test_taints_repel_pods_that_do_not_tolerate_them(corner: Corner) -> None:
    taint = {"key": "example.com/dedicated", "value": "team", "effect": "NoSchedule"}
    change_node(corner.cluster, "node-0", {"spec": {"taints": [taint]}})
    try:
        corner.create("pods", pod("stranger", affinity=pin("node-0")))
        assert "1 node(s) had untolerated taint(s)" in refusal(corner)
        tolerated = [{"key": "example.com/dedicated", "operator": "Exists"}]
        corner.create("pods", pod("member", affinity=pin("node-0"), tolerations=tolerated))
        corner.wait_phases(["Pending", "Running"])
    finally:
        change_node(corner.cluster, "node-0", {"spec": {"taints": None}})


def test_room_that_is_freed_is_given_to_who_waits(corner: Corner) -> None:
    corner.create("pods", pod("first", gpus=8, affinity=pin("node-1"), env={"SIM_RUN_S": "30"}))
    corner.wait_phases(["Running"])
    corner.create("pods", pod("second", gpus=8, affinity=pin("node-1")))
    refusal(corner)

    corner.wait_phases(["Running", "Succeeded"])

    assert node_of(corner, "second") == "node-1"


def test_no_node_is_filled_beyond_what_it_offers(corner: Corner) -> None:
    for number in range(14):
        corner.create("pods", pod(f"p{number}", gpus=3, env={"SIM_RUN_S": "500"}))

    corner.wait_phases(["Pending"] * 6 + ["Running"] * 8)

    nodes = [each["spec"]["nodeName"] for each in corner.items("pods") if each["spec"].get("nodeName")]
    assert {nodes.count(name) for name in nodes} == {2}


def test_higher_priority_goes_first(corner: Corner) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    corner.cluster.request("POST", path, {"metadata": {"name": "urgent"}, "value": 1000})
    corner.create("pods", pod("holder", gpus=8, affinity=pin("node-2"), env={"SIM_RUN_S": "20"}))
    corner.wait_phases(["Running"])
    corner.create("pods", pod("early", gpus=8, affinity=pin("node-2"), env={"SIM_RUN_S": "500"}))
    corner.create("pods", pod("urgent", gpus=8, affinity=pin("node-2"), priorityClassName="urgent"))

    corner.wait_phases(["Pending", "Running", "Succeeded"])

    assert (node_of(corner, "urgent"), node_of(corner, "early")) == ("node-2", "")


@pytest.mark.parametrize(
    ("limits", "requests", "words"),
    [
        ({"hugepages-2Mi": "4Mi", "cpu": "1"}, {"hugepages-2Mi": "2Mi"}, "must be equal to hugepages-2Mi limit of 4Mi"),
        ({"hugepages-2Mi": "4Mi"}, {}, "HugePages require cpu or memory"),
    ],
)
def test_huge_pages_are_not_shared_out(
    corner: Corner, limits: dict[str, str], requests: dict[str, str], words: str
) -> None:
    body = pod("paged")
    body["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": requests}

    code, answer = corner.cluster.request("POST", corner.path("pods"), body)

    assert code == 422, answer
    assert words in answer["message"]


def test_a_runtime_class_that_is_not_there_is_refused(corner: Corner) -> None:
    code, answer = corner.cluster.request("POST", corner.path("pods"), pod("one", runtimeClassName="nothing"))

    assert (code, answer["reason"]) == (403, "Forbidden")
    assert 'pod rejected: RuntimeClass "nothing" not found' in answer["message"]


def test_the_overhead_of_a_runtime_class_counts_on_the_node(corner: Corner) -> None:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    body = {"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "1000"}}}
    assert corner.cluster.request("POST", path, body)[0] == 201
    corner.create("pods", pod("heavy", runtimeClassName="kata"))

    reason = corner.cluster.wait_for(lambda: corner.events("FailedScheduling"), "the refusal")

    assert "Insufficient cpu" in reason[0]
    assert corner.get("pods", "heavy")["spec"]["overhead"] == {"cpu": "1000"}


def test_the_kubelet_refuses_what_was_bound_past_the_scheduler(corner: Corner) -> None:
    corner.create("pods", pod("holder", gpus=8, affinity=pin("node-3")))
    corner.wait_phases(["Running"])
    corner.create("pods", pod("pushed", gpus=1, nodeName="node-3"))

    corner.cluster.wait_for(lambda: "Failed" in corner.phases(), "the refusal")

    assert corner.get("pods", "pushed")["status"]["reason"] == "OutOfnvidia.com/gpu"
