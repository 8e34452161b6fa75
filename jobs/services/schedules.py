"""Schedules: the run that one makes next, the runs that its cluster made, and what people do to it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from jobs import transitions
from jobs.models import Attempt, Job, JobEvent
from jobs.services.submit import next_number
from jobs.transitions import Event
from portal.core import audit, clock
from portal.core.audit import Actor, Target
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError

# What a run has of its schedule, besides what follows from the document.
_INHERITED = (
    "team",
    "queue",
    "owner",
    "name",
    "kind",
    "labels",
    "priority_class",
    "priority",
    "gpus_per_worker",
    "cpu_milli",
    "memory_mib",
    "flavor_ids",
    "cluster_ids",
    "topology_mode",
    "topology_level",
    "spread_policy",
    "tolerations",
)


def run_of(schedule: Job) -> Job:
    """Return the row of its next run, not stored: an ordinary training run that asks for what the schedule says."""
    spec: dict[str, Any] = {**schedule.spec, "workload": "job"}
    spec.pop("schedule", None)
    workers = int(spec.get("workers") or 1)
    return Job(
        **{name: getattr(schedule, name) for name in _INHERITED if name != "owner" or schedule.owner_id},
        workload="job",
        spec=spec,
        workers=workers,
        min_workers=workers,
        gpus=workers * schedule.gpus_per_worker,
    )


def runs_of(schedule: Job) -> QuerySet[Job]:
    """The runs that its cluster made for it, and not those that a person made from its document."""
    return Job.objects.filter(parent=schedule).exclude(adopts="")


@transaction.atomic
def take_run(*, schedule: Job, attempt: Attempt, uid: str, name: str, due_at: datetime | None) -> Job | None:
    """Queue a Job that the schedule's cluster made, as a run of its own. None: it is taken already."""
    if Job.objects.filter(adopts=uid).exists():
        return None
    run = run_of(schedule)
    run.parent = schedule
    # The Job stands where it was made, and its pods ask for what its template says.
    run.cluster_ids = [attempt.cluster_id]
    run.adopts = uid
    run.adopted = {
        "name": name,
        "resource_name": attempt.resource_name,
        "schedule": schedule.uid,
        "schedule_name": attempt.object_name,
    }
    if due_at is not None:
        run.adopted["due_at"] = due_at.isoformat()
    run.number = next_number(run.team, run.name)
    run.save(force_insert=True)
    JobEvent.objects.create(job=run, at=clock.now(), code="queued", data={"gpus": run.gpus})
    audit.record(audit.SYSTEM, "job.submit", _target(run), after={"schedule": schedule.uid, "spec": run.spec})
    transitions.announce(run)
    _tell(schedule, "run_made", {"run": run.full_name, "due_at": run.adopted.get("due_at", "")})
    enqueue("jobs.tasks.run_cycle")
    return run


def tell_skipped(*, schedule: Job, code: str, due_at: datetime | None, **data: object) -> None:
    """Note on the schedule that a run was left out, and why."""
    _tell(schedule, code, {**data, "due_at": due_at.isoformat() if due_at else ""})


def tell_warning(*, schedule: Job, message: str) -> None:
    """Note what the cluster says of the schedule, once for the same words."""
    last = schedule.events.filter(code="schedule_warning").order_by("-pk").first()
    if last is None or last.data.get("message") != message:
        _tell(schedule, "schedule_warning", {"message": message})


def drop_run(run: Job) -> bool:
    """End a run that still waits and whose Job is gone from its cluster."""
    return transitions.move(
        run,
        frm=Job.State.QUEUED,
        to=Job.State.CANCELLED,
        event=Event("run_gone"),
        outcome_code=Job.Outcome.CANCELLED,
        outcome_message="its Job was deleted on the cluster",
        finished_at=clock.now(),
    )


@transaction.atomic
def pause_schedule(*, actor: Actor, job: Job, is_paused: bool) -> None:
    """Let a schedule make no more runs for now, or let it make them again. Raise DomainError when it cannot."""
    if not job.is_schedule:
        raise DomainError(_("Only schedules can be paused."), code="not_a_schedule")
    rows = Job.objects.filter(pk=job.pk, cancel_requested_at=None).exclude(state__in=Job.FINAL)
    if not rows.exists():
        raise DomainError(_("%(job)s is over already.") % {"job": job.full_name}, code="already_over")
    Attempt.objects.filter(job=job).exclude(step=Attempt.Step.ENDED).update(due_at=clock.now())
    enqueue("jobs.tasks.reconcile")
    if not rows.exclude(is_paused=is_paused).update(is_paused=is_paused, version=F("version") + 1):
        return
    audit.record(actor, "job.pause", _target(job), before={"is_paused": not is_paused}, after={"is_paused": is_paused})
    transitions.tell(job, Event("paused" if is_paused else "resumed", actor=actor.name))


def _tell(schedule: Job, code: str, data: Mapping[str, object]) -> None:
    transitions.tell(schedule, Event(code, data))


def _target(job: Job) -> Target:
    return Target("job", job.uid, job.full_name, job.team_id)
