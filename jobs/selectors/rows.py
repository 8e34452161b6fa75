"""The rows of job lists, for a whole page in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clusters.selectors.capacity import is_stale
from clusters.selectors.utilisation import utilisation_of_runs
from jobs.models import Job
from jobs.selectors.placement import AttemptPlace, places_of
from jobs.selectors.standing import line_of
from portal.core import clock


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of a list. `held` and `running` count workers, `utilisation` is in percent (None: nothing measured)."""

    job: Job
    line: str
    shape: str
    held: int
    running: int
    utilisation: int | None
    is_stale: bool


def rows_of(jobs: Sequence[Job]) -> list[JobRow]:
    """Return the rows, in the order of the jobs, in three queries."""
    places = places_of(jobs)
    busy = utilisation_of_runs([job.uid for job in jobs if job.state == Job.State.RUNNING])
    now = clock.now()
    return [_row(job, next(iter(places.get(job.pk, [])), None), busy.get(job.uid), now) for job in jobs]


def shape_of(job: Job, place: AttemptPlace | None) -> str:
    """Return what was asked for as people say it: "4 x 8 h100"."""
    wished = job.spec.get("accelerators") or []
    flavor = place.flavor if place else wished[0] if len(wished) == 1 else ""
    workers = job.spec.get("workers", 1) if job.is_schedule else job.workers
    return f"{workers} x {job.gpus_per_worker} {flavor or 'GPU'}"


def counts_of(job: Job, place: AttemptPlace | None) -> tuple[int, int]:
    """Return how many workers have their place, and how many run."""
    if place is None or job.state not in Job.HOLDING:
        return 0, 0
    held = min(len(place.ranks), job.workers)
    if job.is_service:
        return held, place.ready
    # The workers of a gang change together.
    return held, held if job.state in (Job.State.RUNNING, Job.State.STOPPING) else 0


def _row(job: Job, place: AttemptPlace | None, busy: float | None, now: datetime) -> JobRow:
    held, running = counts_of(job, place)
    return JobRow(
        job=job,
        line=line_of(job, place),
        shape=shape_of(job, place),
        held=held,
        running=running,
        utilisation=None if busy is None else round(busy),
        is_stale=bool(place and job.state in Job.HOLDING and is_stale(place.attempt.cluster, now)),
    )
