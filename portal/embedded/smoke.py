"""`./run smoke`: a whole demo in a temporary folder, one journey through REST, one line of JSON."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from portal.embedded.demo import ROOT, is_answering
from portal.embedded.folder import free_port
from portal.embedded.measure import cpu_percent, living, marked, process_tree, pss_mb

READY_LIMIT_S = 60.0
PSS_LIMIT_MB = 1200.0
IDLE_CPU_LIMIT_PCT = 15.0
_JOB = Path(__file__).with_name("smoke_job.yaml")
_SERVICE = Path(__file__).with_name("smoke_service.yaml")
_RUNNING_TIMEOUT_S, _END_TIMEOUT_S, _SAMPLES_TIMEOUT_S = 60.0, 90.0, 30.0
_SETTLE_S, _IDLE_OVER_S = 10.0, 30.0  # not the tail of the jobs; long enough to average over slow loops
_POLL_S = 0.2


class SmokeError(Exception):
    """A step of the journey did not hold."""


@dataclass
class Report:
    """The line that is printed. A number that was not reached is None."""

    ok: bool = False
    ready_s: float | None = None
    training_s: float | None = None
    inference_s: float | None = None
    gpu_samples: int | None = None
    pss_mb: float | None = None
    idle_cpu_pct: float | None = None
    leftover_processes: int | None = None


def main(arguments: list[str]) -> int:
    """Run the journey, print its line and return 0 only if all of it held."""
    argparse.ArgumentParser(prog="./run smoke", description="Start a demo, run a job on it, stop it.").parse_args(
        arguments
    )
    report = Report()
    with tempfile.TemporaryDirectory(prefix="muster-smoke-") as folder:
        Path(folder).chmod(0o711)  # root's PostgreSQL runs as nobody, who must be able to pass
        problems = _journey(Path(folder), report)
    problems += missed_limits(report)
    report.ok = not problems
    for problem in problems:
        _tell(f"smoke: {problem}")
    sys.stdout.write(json.dumps(asdict(report)) + "\n")
    return 0 if report.ok else 1


def _journey(folder: Path, report: Report) -> list[str]:
    """Start, use and stop a demo. Return what did not hold."""
    port = free_port()
    command = [sys.executable, "-m", "portal.embedded", "demo", "--data", str(folder), "--port", str(port)]
    began = time.monotonic()
    # Its steps go to our standard error: standard output is for the one line.
    # Idle means idle: without the demo's own synthetic jobs, which would run in the middle of the measurement.
    env = os.environ | {"MUSTER_DEMO_LOAD": "0"}
    demo = subprocess.Popen(command, cwd=ROOT, env=env, stdout=sys.stderr, start_new_session=True)  # noqa: S603
    problems = []
    try:
        _wait(lambda: _is_ready(demo, folder, port), "the demo to be ready", 180)
        report.ready_s = round(time.monotonic() - began, 1)
        _use(Portal(f"http://127.0.0.1:{port}", folder / "demo-logins.json"), report)
        _measure(demo.pid, report)
    except (SmokeError, urllib.error.URLError, OSError) as error:
        problems.append(str(error))
    report.leftover_processes = _stop(demo, folder)
    return problems


class Portal:
    """The REST interface as a user with a token sees it."""

    def __init__(self, url: str, logins_file: Path) -> None:
        self._url = url
        self._token: str = json.loads(logins_file.read_text())["token"]
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def submit(self, document: bytes) -> str:
        """Submit a Kubernetes document as team vision and return the job's id."""
        answer = self._ask("jobs/?team=vision", data=document, content_type="application/yaml")
        return str(answer["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Return the job as the portal shows it."""
        return self._ask(f"jobs/{job_id}/")

    def cancel(self, job_id: str) -> None:
        """Stop the job."""
        self._ask(f"jobs/{job_id}/cancel/", data=b"{}")

    def gpu_samples(self, job_id: str) -> int:
        """Return how many values its GPU charts hold."""
        return count_samples(self._ask(f"jobs/{job_id}/metrics/"))

    def _ask(self, path: str, *, data: bytes | None = None, content_type: str = "application/json") -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content_type,
            "Accept": "application/json",
        }
        request = urllib.request.Request(f"{self._url}/api/v1/{path}", data=data, headers=headers)  # noqa: S310
        try:
            with self._direct.open(request, timeout=15) as answer:
                body: dict[str, Any] = json.load(answer)
                return body
        except urllib.error.HTTPError as error:
            raise SmokeError(f"{path} answered {error.code}: {error.read(2000).decode(errors='replace')}") from error


def _use(portal: Portal, report: Report) -> None:
    began = time.monotonic()
    job_id = portal.submit(_JOB.read_bytes())
    _wait(lambda: _has_state(portal, job_id, "running"), "the training job to run", _RUNNING_TIMEOUT_S)
    report.training_s = round(time.monotonic() - began, 2)
    _wait(lambda: portal.gpu_samples(job_id) > 0, "GPU samples of the job", _SAMPLES_TIMEOUT_S)
    _wait(lambda: _has_state(portal, job_id, "succeeded"), "the training job to succeed", _END_TIMEOUT_S)
    report.gpu_samples = portal.gpu_samples(job_id)
    report.inference_s = _serve(portal)


def _serve(portal: Portal) -> float:
    """Run the lesson's model server until it serves, and stop it. Return the seconds from submit to running."""
    began = time.monotonic()
    service_id = portal.submit(_SERVICE.read_bytes())
    _wait(lambda: _has_state(portal, service_id, "running"), "the service to run", _RUNNING_TIMEOUT_S)
    seconds = round(time.monotonic() - began, 2)
    portal.cancel(service_id)
    _wait(lambda: _has_state(portal, service_id, "cancelled"), "the service to stop", _END_TIMEOUT_S)
    return seconds


def _measure(root: int, report: Report) -> None:
    time.sleep(_SETTLE_S)
    report.idle_cpu_pct = round(cpu_percent(root, over_s=_IDLE_OVER_S), 1)
    report.pss_mb = round(pss_mb(process_tree(root)), 1)


def _stop(demo: subprocess.Popen[bytes], folder: Path) -> int:
    """Stop the demo as a service manager would and return how many of its processes are left."""
    before = process_tree(demo.pid) | marked(f"MUSTER_DEMO_DATA={folder.resolve()}")
    demo.send_signal(signal.SIGTERM)
    try:
        demo.wait(timeout=60)
    except subprocess.TimeoutExpired:
        demo.kill()
        demo.wait()
    left = living(before) | marked(f"MUSTER_DEMO_DATA={folder.resolve()}")
    for process in left:
        _tell(f"smoke: process {process.pid} is left over and is killed")
        os.kill(process.pid, signal.SIGKILL)
    return len(left)


def missed_limits(report: Report) -> list[str]:
    """Return what is more than the demo may cost or take."""
    limits = {
        "ready_s": READY_LIMIT_S,
        "pss_mb": PSS_LIMIT_MB,
        "idle_cpu_pct": IDLE_CPU_LIMIT_PCT,
        "leftover_processes": 0,
    }
    values = asdict(report)
    return [
        f"{name} is {values[name]}, the limit {limit:g}"
        for name, limit in limits.items()
        if (values[name] or 0) > limit
    ]


def _is_ready(demo: subprocess.Popen[bytes], folder: Path, port: int) -> bool:
    if demo.poll() is not None:
        raise SmokeError(f"the demo ended with exit code {demo.returncode}")
    return (folder / "demo-logins.json").exists() and is_answering(f"http://127.0.0.1:{port}/readyz")


def _has_state(portal: Portal, job_id: str, wanted: str) -> bool:
    job = portal.job(job_id)
    if job["state"] != wanted and job["state"] in ("failed", "cancelled", "succeeded"):
        raise SmokeError(f"job {job_id} is {job['state']} instead of {wanted}: {job.get('outcome')}")
    return bool(job["state"] == wanted)


def count_samples(value: object) -> int:
    """Return the number of values in figures, however nested: the numbers below "y" or "values", without gaps."""
    if isinstance(value, dict):
        return sum(
            _count_values(inner) if key in ("y", "values") else count_samples(inner) for key, inner in value.items()
        )
    return sum(count_samples(inner) for inner in value) if isinstance(value, list) else 0


def _count_values(values: object) -> int:
    return sum(isinstance(number, int | float) for number in values) if isinstance(values, list) else 0


def _wait(done: Callable[[], bool], what: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            raise SmokeError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(_POLL_S)


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
