"""Starts a simulated cluster as a process of its own, for any test that needs a Kubernetes API.

    cluster = start_simulated(uniform(nodes=4, gpus=8), clock=10)
    try:
        cluster.request("GET", "/api/v1/nodes")                     # (status code, decoded body)
        cluster.control("POST", "/simulated/outage", {"seconds": 5})
        cluster.wait_for(lambda: ..., "what is awaited")
    finally:
        cluster.stop()

`running_cluster(fleet, **options)` does the same as a context manager. A fleet is a dict as
`clusters.simulated.fleet` describes it: `uniform(nodes, gpus, per_rack, per_block)` makes one of equal nodes
`node-0` ..., `demo_fleets()` the two of the demonstration. Further options: `history` (changes that a watch
can resume over), `state` (file to save to), `default_run_s` (simulated seconds of jobs without `SIM_RUN_S`),
`pull_s`, `token`. Containers choose their fate by `SIM_RUN_S`, `SIM_EXIT_CODE`, ... (see
`clusters.simulated.containers`).
"""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

_ROOT = Path(__file__).resolve().parent.parent
_JSON = "application/json"
_TOKEN = "simulated"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass
class SimulatedCluster:
    """A running cluster. `exporter` is a URL with a `{node}` field; `name`, `nodes`, `gpus` as announced."""

    url: str
    token: str
    exporter: str
    name: str
    nodes: int
    gpus: int
    process: subprocess.Popen[str]
    _folder: tempfile.TemporaryDirectory[str] = field(repr=False)

    def request(
        self, method: str, path: str, body: Any = None, *, kind: str = _JSON, token: str | None = None
    ) -> tuple[int, Any]:
        """One request on a fresh connection: status code and decoded JSON (or text)."""
        connection = self.connect()
        try:
            given = self.token if token is None else token
            headers = {"Authorization": f"Bearer {given}"} if given else {}
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {**headers, "Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = (answer.getheader("Content-Type") or "").startswith(_JSON)
        return answer.status, json.loads(text) if is_json else text

    def control(self, method: str, path: str, body: Any = None) -> None:
        """Turns a failure switch; see `clusters.simulated.control`."""
        status, answer = self.request(method, path, {} if body is None else body)
        assert status == 204, answer

    def metrics(self, node: str) -> str:
        status, text = self.request("GET", f"/exporter/{node}/metrics")
        assert status == 200, text
        return str(text)

    def connect(self, timeout_s: float = 20.0) -> http.client.HTTPConnection:
        place = urlsplit(self.url)
        return http.client.HTTPConnection(str(place.hostname), place.port, timeout=timeout_s)

    def wait_for(self, probe: Callable[[], T], what: str, timeout_s: float = 10.0) -> T:
        """The first true answer of `probe`; fails the test with `what` after the time."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            found = probe()
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {timeout_s:.0f} s: {what}")

    def stop(self) -> None:
        """SIGTERM, which saves the state."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._folder.cleanup()


def start_simulated(
    fleet: dict[str, Any], *, clock: float = 1.0, token: str = _TOKEN, **options: Any
) -> SimulatedCluster:
    """Answers when the cluster listens on a free port of the loopback interface."""
    folder = tempfile.TemporaryDirectory(prefix="simulated-")
    path = Path(folder.name, "fleet.json")
    path.write_text(json.dumps(fleet))
    command = [sys.executable, "-m", "clusters.simulated", "--fleet", str(path), "--token", token]
    command += ["--clock", str(clock), "--parent-pid-death"]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait(timeout=10)
        folder.cleanup()
        raise RuntimeError(f"the simulated cluster did not start: exit code {process.returncode}")
    return SimulatedCluster(token=token, process=process, _folder=folder, **json.loads(line))


@contextmanager
def running_cluster(fleet: dict[str, Any], **options: Any) -> Iterator[SimulatedCluster]:
    cluster = start_simulated(fleet, **options)
    try:
        yield cluster
    finally:
        cluster.stop()
