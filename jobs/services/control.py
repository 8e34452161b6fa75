"""What people do to their jobs. A request marks what is wanted; the driver acts on the cluster."""

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from jobs import transitions
from jobs.jobspec.checks import LABELS_MAX, REPLICAS_MAX
from jobs.models import Attempt, Job
from jobs.transitions import Event
from portal.core import audit, clock
from portal.core.audit import Actor, Target
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError


@transaction.atomic
def cancel_job(*, actor: Actor, job: Job) -> None:
    """Cancel a job: at once while it only waits, else by asking the driver to stop it. Cancelling twice is the same.

    Raise DomainError when it is over.
    """
    # Attempt before job, the order in which the driver locks them.
    _wake(job)
    event = Event("cancelled", actor=actor.name)
    now = clock.now()
    columns = {"cancelled_by": actor.name, "outcome_code": Job.Outcome.CANCELLED, "finished_at": now}
    if transitions.move(job, frm=Job.State.QUEUED, to=Job.State.CANCELLED, event=event, **columns):
        audit.record(actor, "job.cancel", _target(job), before={"state": "queued"}, after={"state": "cancelled"})
        if job.adopts and job.parent:
            _wake(job.parent)  # its Job counts as under way until the schedule clears it away
        enqueue("jobs.tasks.run_cycle")
        return
    live = Job.objects.filter(pk=job.pk, state__in=Job.HOLDING)
    if live.filter(cancel_requested_at=None).update(
        cancel_requested_at=now, cancelled_by=actor.name, version=F("version") + 1
    ):
        audit.record(actor, "job.cancel", _target(job), after={"cancel_requested": True})
        transitions.tell(job, Event("cancel_requested", actor=actor.name))
    elif not live.exists():
        raise _over(job)


@transaction.atomic
def scale_service(*, actor: Actor, job: Job, replicas: int) -> None:
    """Set how many replicas a service wants. Raise DomainError when it is no service, ends, or waits whole."""
    if not job.is_service:
        raise DomainError(_("Only services can be scaled."), code="not_a_service")
    if not replicas and job.state == Job.State.QUEUED:
        text = _("It has not started: cancel it, or ask for one replica or more.")
        raise DomainError(text, code="not_started", field="replicas")
    if not 0 <= replicas <= REPLICAS_MAX:
        text = _("Replicas must be from 0 to %(most)d.") % {"most": REPLICAS_MAX}
        raise DomainError(text, code="out_of_range", field="replicas", numbers={"most": REPLICAS_MAX})
    _wake(job)
    before = job.workers
    spec = {**job.spec, "replicas": replicas}
    # Only what the person changes must be as it was read: the driver moves the job on at any time.
    rows = Job.objects.filter(pk=job.pk, workers=before, cancel_requested_at=None).exclude(state__in=Job.FINAL)
    changed = rows.update(
        workers=replicas,
        min_workers=min(1, replicas),
        gpus=replicas * job.gpus_per_worker,
        spec=spec,
        version=F("version") + 1,
    )
    if not changed:
        raise _unscalable(job)
    audit.record(actor, "job.scale", _target(job), before={"replicas": before}, after={"replicas": replicas})
    transitions.tell(job, Event("scaled", {"before": before, "after": replicas}, actor.name))
    enqueue("jobs.tasks.run_cycle")


@transaction.atomic
def label_job(*, actor: Actor, job: Job, labels: dict[str, str]) -> None:
    """Add labels to a job; an empty value removes one, however many there are."""
    merged = {key: value for key, value in {**job.labels, **labels}.items() if value}
    if len(merged) > max(LABELS_MAX, len(job.labels)):
        text = _("%(job)s would have more than %(most)d labels.") % {"job": job.full_name, "most": LABELS_MAX}
        raise DomainError(text, code="too_many", field="labels", numbers={"most": LABELS_MAX})
    if not Job.objects.filter(pk=job.pk, labels=job.labels).update(labels=merged, version=F("version") + 1):
        raise DomainError(_("%(job)s changed meanwhile; look again.") % {"job": job.full_name}, code="stale")
    audit.record(actor, "job.label", _target(job), before={"labels": job.labels}, after={"labels": merged})
    transitions.announce(job)


def _unscalable(job: Job) -> DomainError:
    now = Job.objects.filter(pk=job.pk).first()
    if now is None or now.is_final:
        return _over(job)
    if now.cancel_requested_at:
        return DomainError(_("%(job)s is being cancelled.") % {"job": job.full_name}, code="cancel_requested")
    return DomainError(_("The service changed meanwhile; look again."), code="stale")


def _over(job: Job) -> DomainError:
    return DomainError(_("%(job)s is over already.") % {"job": job.full_name}, code="already_over")


def _target(job: Job) -> Target:
    return Target("job", job.uid, job.full_name, job.team_id)


def _wake(job: Job) -> None:
    """Make the live attempt due and hold its row, so that the driver's step is before us or after us, never between."""
    Attempt.objects.filter(job=job).exclude(step=Attempt.Step.ENDED).update(due_at=clock.now())
    enqueue("jobs.tasks.reconcile")
