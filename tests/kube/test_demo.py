"""`./run demo --kube`: a real control plane beside the simulated clusters, and nothing of it left afterwards."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from portal.embedded.measure import marked
from portal.embedded.processes import tied
from tests.contract.objects import wait_for
from tests.e2e.portal import Api
from tests.kube.plane import ORDER
from tests.kube.test_plane import parts_in

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
JOB = {"name": "real", "image": "example.org/t:1", "workers": 2, "gpus_per_worker": 8, "accelerators": ["h100"]}


@dataclass
class Demo:
    """A demo that runs, what it said, and where its control plane keeps its data."""

    process: "subprocess.Popen[str]"
    folder: Path
    said: str
    plane: Path

    def api(self) -> Api:
        """REST as alice."""
        (url,) = re.findall(r"ready after \S+ s: (\S+)", self.said)
        return Api(url, json.loads((self.folder / "demo-logins.json").read_text())["token"])

    def state(self, job_id: str) -> str:
        return str(self.api().job(job_id)["state"])


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the demo keeps its data; not below pytest's own folder, which the user of root's server cannot enter."""
    with TemporaryDirectory(prefix="muster-demo-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def demo(folder: Path) -> Iterator[Demo]:
    """Started from nothing, without jobs of its own."""
    command = [sys.executable, "-m", "portal.embedded", "demo", "--kube", "--port", "0", "--data", str(folder)]
    names = ("BROKER_URL", "DATABASE_URL", "DJANGO_", "MUSTER_", "PYTEST")
    env = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    process = subprocess.Popen(
        tied(command, death_signal=signal.SIGTERM),
        cwd=ROOT,
        env=env | {"MUSTER_DEMO_LOAD": "0", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            said = _until_ready(process)
            told = json.loads((folder / "kube.json").read_text())
            yield Demo(process, folder, said, Path(told["clusters"][0]["kubeconfig"]).parent)
        finally:
            process.terminate()


def _until_ready(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "Ctrl-C" in line:
            return said
    raise AssertionError(said)


def test_a_demo_with_a_real_control_plane_runs_a_gang_there_and_leaves_nothing(demo: Demo) -> None:
    api = demo.api()
    assert "kube1 is real Kubernetes with fake nodes (KWOK)" in demo.said
    assert set(parts_in(demo.plane)) == set(ORDER)
    wait_for(lambda: api.ask("GET", "clusters/kube1/")[1]["nodes_ready"] == 16, "its nodes are seen", timeout_s=60)
    _status, cluster = api.ask("GET", "clusters/kube1/")
    assert (cluster["is_simulated"], cluster["has_fake_nodes"], cluster["state"]) == (True, True, "healthy")

    job_id = api.submit({**JOB, "clusters": ["kube1"], "env": {"SIM_RUN_S": "3"}})
    wait_for(lambda: demo.state(job_id) == "succeeded", "the gang has run", timeout_s=90)
    assert api.job(job_id)["attempts"][-1]["cluster"] == "kube1"

    # What the administrator's YAML brought: each team's space is as it should be, and no check has a problem.
    wait_for(lambda: _spaces_in_step(api), "the spaces are in step", timeout_s=90)
    wait_for(lambda: api.ask("GET", "clusters/kube1/probe/")[1]["probed_at"], "the checks were made", timeout_s=60)
    _status, checks = api.ask("GET", "clusters/kube1/probe/")
    assert checks["checks"] == []  # a member sees problems alone

    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=90) == 0
    assert parts_in(demo.plane) == {}
    assert marked(f"MUSTER_DEMO_DATA={demo.folder}") == set()
    assert not demo.plane.exists()
    assert not (demo.folder / "kube.json").exists()


def _spaces_in_step(api: Api) -> bool:
    _status, page = api.ask("GET", "spaces/")
    states = {space["state"] for space in page["results"] if space["cluster"] == "kube1"}
    return states == {"in_step"}
