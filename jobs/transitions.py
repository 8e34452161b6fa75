"""The only writer of a job's state: compare-and-set, one event, one notice to open pages.

queued -> admitted -> starting -> running -> succeeded | failed
   |         |           |           |
   |         +-----------+-----------+--> stopping -> queued (again) | cancelled | failed
   +--> cancelled | failed
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import F

from jobs.models import Job, JobEvent
from portal.core import clock
from portal.core.publish import publish

State = Job.State

ALLOWED: Mapping[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.ADMITTED, State.CANCELLED, State.FAILED}),
    State.ADMITTED: frozenset({State.STARTING, State.STOPPING}),
    State.STARTING: frozenset({State.RUNNING, State.STOPPING, State.SUCCEEDED, State.FAILED}),
    State.RUNNING: frozenset({State.STOPPING, State.SUCCEEDED, State.FAILED}),
    State.STOPPING: frozenset({State.QUEUED, State.CANCELLED, State.FAILED}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Event:
    """What the job's log says of a change: a code, its numbers, and who did it (empty: the portal itself)."""

    code: str
    data: Mapping[str, object] = field(default_factory=dict)
    actor: str = ""


def move(job: Job, *, frm: State | Iterable[State], to: State, event: Event, **columns: object) -> bool:
    """Move the job from one of the states `frm` to `to`. False: it was not in any of them any more, nothing changed.

    `columns` are written in the same update. Raise ValueError for a change that no job can make.
    """
    sources = [frm] if isinstance(frm, State) else list(frm)
    if wrong := [source for source in sources if to not in ALLOWED[source]]:
        raise ValueError(f"a job never goes from {wrong[0]} to {to}")
    with transaction.atomic():
        rows = Job.objects.filter(pk=job.pk, state__in=sources)
        if not rows.update(state=to, version=F("version") + 1, updated_at=clock.now(), **columns):
            return False
        tell(job, event)
    return True


def tell(job: Job, event: Event) -> None:
    """Append to the job's log and tell open pages."""
    JobEvent.objects.create(job_id=job.pk, at=clock.now(), code=event.code, data=dict(event.data), actor=event.actor)
    announce(job)


def announce(job: Job) -> None:
    """Tell open pages that the job changed."""
    publish(f"job:{job.uid}", job.uid)
    publish(f"team:{job.team_id}", job.uid)
