"""Jobs from creation to their end."""

import pytest

from tests.simulated.conftest import GATE, Corner, job, pin, release

pytestmark = pytest.mark.timeout(60)


def test_a_suspended_job_makes_no_pods_until_it_is_resumed(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, {"suspend": True}, env={"SIM_RUN_S": "20"}))
    corner.wait_condition("gang", "Suspended")
    assert corner.items("pods") == []
    assert "startTime" not in corner.get("jobs", "gang")["status"]

    code, _ = corner.patch("jobs", "gang", [{"op": "replace", "path": "/spec/suspend", "value": False}])

    assert code == 200
    corner.wait_phases(["Running", "Running"])
    assert corner.condition("jobs", "gang", "Suspended")["status"] == "False"


def test_a_gang_waits_at_its_gate_and_goes_where_it_is_pinned(corner: Corner) -> None:
    corner.create("jobs", job("gang", 4, gpus=8, env={"SIM_RUN_S": "40"}, **GATE))
    pods = corner.cluster.wait_for(lambda: (found := corner.items("pods")) and len(found) == 4 and found, "four pods")
    assert {each["status"]["conditions"][0]["reason"] for each in pods} == {"SchedulingGated"}

    for each in pods:
        rank = int(each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
        code, answer = corner.patch("pods", each["metadata"]["name"], release(each, f"node-{3 - rank}"))
        assert code == 200, answer

    corner.wait_phases(["Running"] * 4)
    places = {each["spec"]["hostname"]: each["spec"]["nodeName"] for each in corner.items("pods")}
    assert places == {f"gang-{rank}": f"node-{3 - rank}" for rank in range(4)}
    corner.wait_condition("gang", "Complete")
    status = corner.get("jobs", "gang")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (4, "0-3")
    assert all("finalizers" not in each["metadata"] for each in corner.items("pods"))


def test_a_pod_pinned_to_a_full_node_stays_pending(corner: Corner) -> None:
    corner.create("jobs", job("first", 1, gpus=8, affinity=pin("node-0")))
    corner.wait_phases(["Running"])
    corner.create("jobs", job("second", 1, gpus=1, affinity=pin("node-0")))

    [message] = corner.cluster.wait_for(lambda: corner.events("FailedScheduling"), "a refusal")

    assert message.startswith("0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) didn't satisfy")
    assert corner.phases() == ["Pending", "Running"]
