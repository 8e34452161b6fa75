"""Submit a trace as people would, watch the clusters while it runs, and say whether everything held."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Sum

from clusters.k8s.gateway import Gateway
from clusters.models import Cluster, NodeAccelerator
from jobs.accounting import drift
from jobs.models import Allocation, Job
from jobs.replay.follower import Follower
from jobs.services import intake, submit
from jobs.simulator.invariants import Referee
from jobs.simulator.replay import Submission
from portal.core.audit import SYSTEM
from portal.identity.models import Team, User

POLL_S = 0.5
# A gang may stand half bound for T2, and a busy machine looks a little later.
SLACK_S = 15.0
IMAGE = "example.org/replay:1"
MOST_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Report:
    """The line that a replay prints. Waits are from submit to running; all times in seconds."""

    ok: bool
    jobs: int
    gangs: int
    gpus: int
    succeeded: int
    failed: int
    unfinished: int
    attempts: int
    events: int
    violations: int
    examples: list[dict[str, str]]
    drift: int
    held: int
    max_wait_s: float
    mean_wait_s: float
    makespan_s: float

    def as_document(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def replay(submissions: Sequence[Submission], *, team: Team, owner: User, timeout_s: float) -> Report:
    """Submit each at its time, wait until all have ended, and judge. `timeout_s` counts after the last submit."""
    with _followers() as followers:
        uids = _submit_all(submissions, team, owner)
        _wait_until_over(uids, timeout_s)
    return _report(uids, followers)


@contextmanager
def _followers() -> Iterator[list[Follower]]:
    followers = []
    for cluster in Cluster.objects.filter(is_enabled=True):
        referee = Referee(domain=settings.MUSTER_DOMAIN, bind_s=settings.MUSTER_BIND_S + SLACK_S)
        followers.append(Follower(Gateway(cluster), referee))
    for follower in followers:
        follower.start()
    yield followers
    for follower in followers:
        follower.stop()


def _submit_all(submissions: Sequence[Submission], team: Team, owner: User) -> list[str]:
    started = time.monotonic()
    uids = []
    for submission in submissions:
        time.sleep(max(0.0, started + submission.at_s - time.monotonic()))
        spec = intake.read_document(_document(submission), team=team)
        request = submit.resolve(spec, team=team)
        uids.append(submit.submit_job(actor=SYSTEM, owner=owner, request=request).uid)
    return uids


def _document(submission: Submission) -> dict[str, object]:
    return {
        "name": "replay",
        "kind": "training",
        "image": IMAGE,
        "workers": submission.workers,
        "gpus_per_worker": submission.gpus_per_worker,
        "cpu": {"request": "1"},
        "memory": {"request": "1Gi"},
        "env": {"SIM_RUN_S": f"{submission.run_s:.2f}"},
    }


def _wait_until_over(uids: Sequence[str], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    alive = Job.objects.filter(uid__in=uids).exclude(state__in=Job.FINAL)
    while alive.exists() and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _report(uids: Sequence[str], followers: Sequence[Follower]) -> Report:
    jobs = list(Job.objects.filter(uid__in=uids))
    violations = [violation for follower in followers for violation in follower.violations]
    states = [job.state for job in jobs]
    waits = [_seconds(job.created_at, job.started_at) for job in jobs if job.started_at]
    ends = [job.finished_at for job in jobs if job.finished_at]
    begin = min((job.created_at for job in jobs), default=None)
    drifted = len(drift.findings())
    held = Allocation.objects.filter(released_at=None).count()
    unfinished = sum(not job.is_final for job in jobs)
    return Report(
        ok=not (violations or drifted or held or unfinished or Job.State.FAILED in states),
        jobs=len(jobs),
        gangs=sum(job.workers > 1 for job in jobs),
        gpus=NodeAccelerator.objects.aggregate(total=Sum("allocatable"))["total"] or 0,
        succeeded=states.count(Job.State.SUCCEEDED),
        failed=states.count(Job.State.FAILED),
        unfinished=unfinished,
        attempts=sum(job.attempts_made for job in jobs),
        events=sum(follower.events for follower in followers),
        violations=len(violations),
        examples=[asdict(violation) for violation in violations[:MOST_EXAMPLES]],
        drift=drifted,
        held=held,
        max_wait_s=round(max(waits, default=0.0), 1),
        mean_wait_s=round(sum(waits) / len(waits), 1) if waits else 0.0,
        makespan_s=round(_seconds(begin, max(ends)), 1) if begin and ends else 0.0,
    )


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()
