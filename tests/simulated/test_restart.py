"""Start, stop and start again."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusters.simulated.fleet import CLAIM_SIZES, demo_fleets, expand, uniform
from tests.clusters_running import running_cluster
from tests.simulated.conftest import Corner, job, pin, pod

pytestmark = pytest.mark.timeout(60)


def test_a_saved_cluster_goes_on_where_it_stopped(tmp_path: Path) -> None:
    fleet, state = uniform(nodes=2, gpus=8), tmp_path / "state.json"
    with running_cluster(fleet, state=state) as cluster:
        corner = Corner(cluster, "default")
        corner.create("jobs", job("gang", 1, gpus=3, affinity=pin("node-1"), env={"SIM_RUN_S": "3"}))
        corner.create("pods", pod("full", gpus=8, affinity=pin("node-1")))
        corner.wait_phases(["Pending", "Running"])
        [before] = corner.items("pods", "labelSelector=job")
        old = cluster.request("GET", "/api/v1/pods")[1]["metadata"]["resourceVersion"]
        held = [line for line in cluster.metrics("node-1").splitlines() if before["metadata"]["name"] in line]
    time.sleep(2)
    with running_cluster(fleet, state=state) as cluster:
        corner = Corner(cluster, "default")
        [after] = corner.items("pods", "labelSelector=job")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["phase"] == "Running"
        again = [line for line in cluster.metrics("node-1").splitlines() if before["metadata"]["name"] in line]
        assert len(again) == len(held)
        assert cluster.request("GET", f"/api/v1/pods?watch=1&resourceVersion={old}")[1]["type"] == "ERROR"

        corner.wait_condition("gang", "Complete")
        corner.wait_phases(["Running", "Succeeded"])


def test_a_killed_cluster_keeps_what_is_older_than_a_moment(tmp_path: Path) -> None:
    fleet, state = uniform(nodes=1, gpus=8), tmp_path / "state.json"
    with running_cluster(fleet, state=state) as cluster:
        Corner(cluster, "default").create("pods", pod("one", env={"SIM_RUN_S": "5000"}))
        cluster.wait_for(lambda: Corner(cluster, "default").phases() == ["Running"], "a running pod")
        time.sleep(1.5)
        cluster.process.send_signal(signal.SIGKILL)
    with running_cluster(fleet, state=state) as cluster:
        assert Corner(cluster, "default").phases() == ["Running"]


def test_a_cluster_ends_with_its_parent(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.json"
    fleet.write_text(json.dumps(uniform(nodes=1, gpus=1)))
    command = [sys.executable, "-m", "clusters.simulated", "--fleet", str(fleet), "--token", "t", "--parent-pid-death"]
    script = (
        "import subprocess, sys; child = subprocess.Popen(sys.argv[1:]); print(child.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    url = json.loads(parent.stdout.readline())["url"]
    assert url.startswith("http://127.0.0.1:")

    parent.kill()
    parent.wait()

    end = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < end:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}/stat").exists()
    parent.stdout.close()
    assert parent.stdin is not None
    parent.stdin.close()


def test_without_a_token_nothing_starts(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.json"
    fleet.write_text(json.dumps(uniform(nodes=1, gpus=1)))

    ended = subprocess.run(
        [sys.executable, "-m", "clusters.simulated", "--fleet", str(fleet)],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"},
    )  # fmt: skip

    assert ended.returncode != 0
    assert "--token or SIMULATED_TOKEN" in ended.stderr


def test_the_demonstration_has_64_nodes_and_512_gpus() -> None:
    nodes = [node for fleet in demo_fleets() for node in expand(fleet)]

    assert (len(nodes), sum(node["gpus"] for node in nodes)) == (64, 512)
    assert len({node["name"] for node in nodes}) == 64
    assert {"topology.kubernetes.io/zone", "muster.example/block", "muster.example/rack"} <= set(nodes[0]["labels"])


def test_a_fleet_file_is_written_for_any_size(tmp_path: Path) -> None:
    out = tmp_path / "north.json"
    subprocess.run([sys.executable, "-m", "clusters.simulated.fleet", "--nodes", "10", "--out", str(out)], check=True)

    with running_cluster(json.loads(out.read_text())) as cluster:
        assert (cluster.name, cluster.nodes, cluster.gpus) == ("north", 10, 80)
        namespaces = cluster.request("GET", "/api/v1/namespaces/team-vision/persistentvolumeclaims")[1]["items"]
        assert {each["metadata"]["name"] for each in namespaces} == set(CLAIM_SIZES)
