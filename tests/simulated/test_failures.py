"""The switches: lost nodes, outages, lost answers, exporters."""

import re
import time
from http.client import HTTPException, HTTPResponse
from typing import Any

import pytest

from tests.clusters_running import SimulatedCluster
from tests.simulated.conftest import GATE, Corner, job, pin, pod

pytestmark = pytest.mark.timeout(60)


def node(cluster: SimulatedCluster, name: str) -> dict[str, Any]:
    return dict(cluster.request("GET", f"/api/v1/nodes/{name}")[1])


def ready(cluster: SimulatedCluster, name: str) -> str:
    return next(str(each["status"]) for each in node(cluster, name)["status"]["conditions"] if each["type"] == "Ready")


def value(text: str, metric: str, gpu: int) -> tuple[float, str]:
    """A metric of one GPU and the pod that holds it."""
    [line] = re.findall(rf'^{metric}{{gpu="{gpu}",.*$', text, re.MULTILINE)
    pod = re.search(r'pod="([^"]*)"', line)
    return float(line.rpartition(" ")[2]), pod.group(1) if pod else ""


def stream_ends(stream: HTTPResponse) -> bool:
    """Reads on until the other side closes, with or without an error."""
    try:
        while stream.readline():
            pass
    except (ConnectionError, HTTPException):
        return True
    return True


def test_pods_of_a_lost_node_hang_until_it_returns(corner: Corner) -> None:
    cluster = corner.cluster
    lost = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
    ]
    body = job("gang", 1, affinity=pin("node-0"), tolerations=lost, env={"SIM_RUN_S": "5000"})
    corner.create("jobs", body)
    corner.wait_phases(["Running"])
    cluster.control("POST", "/simulated/nodes/node-0/fail")
    try:
        assert ready(cluster, "node-0") == "Unknown"
        assert {each["effect"] for each in node(cluster, "node-0")["spec"]["taints"]} == {"NoSchedule", "NoExecute"}

        def evicted() -> list[dict[str, Any]]:
            return [each for each in corner.items("pods") if "deletionTimestamp" in each["metadata"]]

        [hanging] = cluster.wait_for(evicted, "the eviction")
        name = hanging["metadata"]["name"]
        assert corner.condition("pods", name, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        time.sleep(0.5)
        assert corner.get("pods", name)["status"]["phase"] == "Running"
        assert cluster.request("GET", corner.path("pods", name) + "/log")[0] == 500
    finally:
        cluster.control("POST", "/simulated/nodes/node-0/recover")
    assert ready(cluster, "node-0") == "True"
    assert "taints" not in node(cluster, "node-0")["spec"]
    cluster.wait_for(lambda: corner.items("pods") == [], "the pod to go at last")


def test_a_tolerant_pod_survives_a_lost_node(corner: Corner) -> None:
    corner.create("pods", pod("one", affinity=pin("node-1"), env={"SIM_RUN_S": "40"}))
    corner.wait_phases(["Running"])
    corner.cluster.control("POST", "/simulated/nodes/node-1/fail")
    time.sleep(0.5)
    corner.cluster.control("POST", "/simulated/nodes/node-1/recover")

    corner.wait_phases(["Succeeded"])


def test_an_unknown_node_cannot_fail(cluster: SimulatedCluster) -> None:
    assert cluster.request("POST", "/simulated/nodes/nowhere/fail", {})[0] == 404
    assert cluster.request("POST", "/simulated/outage", {"seconds": "long"})[0] == 400


def test_in_an_outage_nothing_answers_and_the_world_goes_on(corner: Corner) -> None:
    cluster = corner.cluster
    corner.create("pods", pod("one", env={"SIM_RUN_S": "10"}))
    corner.wait_phases(["Running"])
    connection = cluster.connect()
    connection.request("GET", "/api/v1/pods?watch=1", headers={"Authorization": f"Bearer {cluster.token}"})
    stream = connection.getresponse()
    stream.readline()

    cluster.control("POST", "/simulated/outage", {"seconds": 1.5})

    with pytest.raises((ConnectionError, OSError)):
        cluster.request("GET", "/api/v1/pods")
    assert stream_ends(stream)
    assert cluster.request("GET", "/exporter/node-0/metrics")[0] == 200
    connection.close()
    time.sleep(1.6)
    corner.wait_phases(["Succeeded"])


def test_a_lost_answer_was_carried_out_once(corner: Corner) -> None:
    corner.cluster.control("POST", "/simulated/lose-reply", {"method": "POST", "kind": "Job"})
    corner.create("pods", pod("other", **GATE))

    with pytest.raises((ConnectionError, OSError)):
        corner.cluster.request("POST", corner.path("jobs"), job("gang", 2, {"suspend": True}))

    code, answer = corner.cluster.request("POST", corner.path("jobs"), job("gang", 2, {"suspend": True}))
    assert (code, answer["reason"]) == (409, "AlreadyExists")


def test_latency_delays_every_answer(cluster: SimulatedCluster) -> None:
    cluster.control("PUT", "/simulated/latency", {"seconds": 0.3})
    start = time.monotonic()
    cluster.request("GET", "/api/v1/namespaces")
    took = time.monotonic() - start
    cluster.control("PUT", "/simulated/latency", {"seconds": 0})

    assert took >= 0.3


def test_fewer_devices_leave_less_room_and_running_pods_alone(corner: Corner) -> None:
    cluster = corner.cluster
    corner.create("pods", pod("one", gpus=8, affinity=pin("node-2"), env={"SIM_RUN_S": "5000"}))
    corner.wait_phases(["Running"])
    cluster.control("PUT", "/simulated/nodes/node-2/gpus", {"allocatable": 6})

    offered = node(cluster, "node-2")["status"]

    assert (offered["capacity"]["nvidia.com/gpu"], offered["allocatable"]["nvidia.com/gpu"]) == ("8", "6")
    assert corner.phases() == ["Running"]
    assert value(cluster.metrics("node-2"), "DCGM_FI_DEV_XID_ERRORS", 7)[0] == 79
    cluster.control("PUT", "/simulated/nodes/node-2/gpus", {"allocatable": 8})


def test_the_exporter_shows_who_loads_a_gpu(corner: Corner) -> None:
    corner.create("pods", pod("one", gpus=2, affinity=pin("node-3"), env={"SIM_RUN_S": "5000"}))
    corner.wait_phases(["Running"])

    def warm() -> str:
        text = corner.cluster.metrics("node-3")
        return text if value(text, "DCGM_FI_DEV_GPU_UTIL", 0)[0] > 30 else ""

    text = corner.cluster.wait_for(warm, "the load")

    assert value(text, "DCGM_FI_DEV_GPU_UTIL", 1)[1] == "one"
    assert value(text, "DCGM_FI_DEV_GPU_UTIL", 2) == (0, "")
    used, free = (value(text, f"DCGM_FI_DEV_FB_{word}", 0)[0] for word in ("USED", "FREE"))
    assert 20_000 < used < 81_559
    assert used + free + 512 == 81_559
    assert value(text, "DCGM_FI_DEV_POWER_USAGE", 0)[0] > value(text, "DCGM_FI_DEV_POWER_USAGE", 5)[0]


def test_one_gpu_can_be_forced_and_freed(cluster: SimulatedCluster) -> None:
    cluster.control("PUT", "/simulated/gpus/node-0/3", {"utilisation": 37})
    assert value(cluster.metrics("node-0"), "DCGM_FI_DEV_GPU_UTIL", 3)[0] == 37
    cluster.control("DELETE", "/simulated/gpus/node-0/3")
    assert value(cluster.metrics("node-0"), "DCGM_FI_DEV_GPU_UTIL", 3)[0] == 0
    assert cluster.request("PUT", "/simulated/gpus/node-0/3", {"colour": 1})[0] == 400


@pytest.mark.parametrize("path", ["/simulated/exporter", "/simulated/exporter/node-0"])
def test_a_silent_exporter_hangs_up(cluster: SimulatedCluster, path: str) -> None:
    cluster.control("PUT", path, {"silent": True})
    with pytest.raises((ConnectionError, OSError)):
        cluster.metrics("node-0")
    cluster.control("PUT", path, {"silent": False})

    assert "DCGM_FI_DEV_GPU_UTIL" in cluster.metrics("node-0")
