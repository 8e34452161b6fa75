"""Every request of the driver in the life of a gang, and every way to lose it together with its worker.

The suites beside it run the matrix on the simulated cluster and, with `--kube`, on a real control plane.
"""

import os
import signal
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.crash.proxy import Held, Moment
from tests.crash.site import Site, judged

RANKS = 4
LONG_S = 3600


@dataclass(frozen=True)
class Point:
    """One request of the driver: a method, what its path matches, and how many such requests pass before it."""

    name: str
    method: str
    path: str
    skip: int = 0
    # What must have been done before the request can come.
    after: str = ""


class Fate(Enum):
    """What becomes of the request whose worker is killed."""

    LOST = "lost"  # the server never saw it
    UNANSWERED = "unanswered"  # the server did it, nobody knows
    LATE = "late"  # it arrives when another worker has gone on


JOB_PATH = r"/jobs/m-[a-z0-9]+-a1$"
PODS_PATH = r"/namespaces/team-vision/pods\?"
CREATE = Point("S1 create", "POST", r"/namespaces/team-vision/jobs$")
ATTACH = Point("S2 attach", "POST", r"/namespaces/team-vision/services$")
# Only where the cluster binds gangs whole.
GROUP = Point("S2 group", "POST", r"/namespaces/team-vision/podgroups$")
OPEN = Point("S3 open", "PATCH", JOB_PATH)
LOOK = Point("S5 look", "GET", PODS_PATH)
FIRST_RELEASE = Point("S5 first release", "PATCH", r"/pods/")
LAST_RELEASE = Point("S5 last release", "PATCH", r"/pods/", skip=RANKS - 1)
SETTLE = Point("S8 settle", "GET", PODS_PATH, after="running")
DELETE = Point("S9 delete", "DELETE", JOB_PATH, after="cancel")
PROOF = Point("S9 proof", "GET", JOB_PATH, after="cancel")
WRITES = (CREATE, ATTACH, OPEN, FIRST_RELEASE, LAST_RELEASE, DELETE)
READS = (LOOK, SETTLE, PROOF)
MATRIX = [(point, fate) for point in WRITES for fate in Fate] + [(point, Fate.LOST) for point in READS]
# A cluster that pins ranks at their creation gets no patch for a pod, and is not asked for its pods before they run.
BORN_PINNED = [(point, fate) for point, fate in MATRIX if point not in (FIRST_RELEASE, LAST_RELEASE, LOOK)]


def title(case: tuple[Point, Fate]) -> str:
    """The name of a case in a report."""
    point, fate = case
    return f"{point.name}, {fate.value}"


def submit(site: Site, *, run_s: int) -> str:
    """A gang of four ranks."""
    document = {
        "name": "gang",
        "kind": "training",
        "image": "example.org/train:1",
        "workers": RANKS,
        "gpus_per_worker": 4,
        "accelerators": ["h100"],
        "env": {"SIM_RUN_S": str(run_s)},
    }
    return site.portal.api.submit(document)


def kill_at(site: Site, case: tuple[Point, Fate]) -> dict[str, Any]:
    """Kill the worker at the point, start another one, and return the job as it ended.

    Asserts that the gang was whole or gone at every moment, that no GPU was held twice, and that nothing is left.
    """
    point, fate = case
    with judged(site) as violations:
        job_id, held = _hold(site, point, _moment(fate), run_s=_run_s(site, point))
        site.portal.kill("worker")
        if fate is not Fate.LATE:
            held.lose()
        site.portal.launch("worker")
        job = _until_end(site, job_id, point, late=held.deliver if fate is Fate.LATE else None)
        assert site.portal.held() == 0
        assert site.bound(job_id) == []
    assert violations == []
    return job


def pause_at(site: Site, point: Point) -> dict[str, Any]:
    """Stop the worker at the point, let another one do its work, and wake it again: it must change nothing."""
    with judged(site) as violations:
        job_id, held = _hold(site, point, Moment.REPLY, run_s=LONG_S)
        sleeper = site.portal.processes.pop("worker")
        os.killpg(sleeper.pid, signal.SIGSTOP)
        try:
            site.portal.launch("worker")
            site.portal.until_state(job_id, "running")
        finally:
            held.deliver()
            os.killpg(sleeper.pid, signal.SIGCONT)
        bound = site.bound(job_id)
        site.portal.api.act(job_id, "cancel")
        job = site.portal.until_state(job_id, "cancelled")
        os.killpg(sleeper.pid, signal.SIGKILL)
        sleeper.wait()
        assert len(bound) == RANKS
        assert site.portal.held() == 0
    assert violations == []
    return job


def _hold(site: Site, point: Point, at: Moment, *, run_s: int) -> tuple[str, Held]:
    """Submit a gang and go on until the request of the point is held."""

    def armed() -> Held:
        return site.proxy.hold(point.method, point.path, at=at, skip=point.skip)

    if point.after == "":
        held = armed()
        job_id = submit(site, run_s=run_s)
    else:
        job_id = submit(site, run_s=run_s)
        site.portal.until_state(job_id, "running", "succeeded")
        held = armed()
    if point.after == "cancel":
        site.portal.api.act(job_id, "cancel")
    held.wait()
    return job_id, held


def _run_s(site: Site, point: Point) -> int:
    if point.after == "cancel":
        return LONG_S
    # What happens at its end must not be over before it is waited for.
    return 3 * site.short_s if point.after == "running" else site.short_s


def _moment(fate: Fate) -> Moment:
    return Moment.REPLY if fate is Fate.UNANSWERED else Moment.ARRIVAL


def _until_end(site: Site, job_id: str, point: Point, *, late: Any) -> dict[str, Any]:
    if point.after == "cancel":
        if late:
            site.portal.until_state(job_id, "cancelled")
            late()
        return site.portal.until_state(job_id, "cancelled")
    site.portal.until_state(job_id, "running", "succeeded")
    if late:
        late()
    return site.portal.until_state(job_id, "succeeded")
