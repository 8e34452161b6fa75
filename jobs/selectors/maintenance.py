"""What the maintenance of a node does to the runs on it, for its page. It names this function in a setting."""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Sum
from django.urls import reverse
from django.utils.translation import gettext as _

from clusters.models import Node
from clusters.selectors.effects import Effect
from jobs.models import Allocation, Attempt, Job
from jobs.selectors.jobs import jobs_visible_to
from jobs.selectors.placement import places_of
from jobs.selectors.standing import loss_of
from portal.identity.models import User


def effects_on(node: Node, user: User, deadline_at: datetime, now: datetime) -> list[Effect]:
    """Return each run that holds a part of the node and what happens to it at the deadline, in three queries.

    Runs that the person may not see are told by their team alone.
    """
    held = Allocation.objects.filter(node=node, released_at=None)
    gpus = dict(held.values_list("attempt_id").annotate(all_gpus=Sum("gpus")))
    attempts = list(
        Attempt.objects.filter(pk__in=gpus)
        .select_related("job__team")
        .annotate(is_visible=Exists(jobs_visible_to(user).filter(pk=OuterRef("job_id"))))
        .order_by("job__name", "job__number", "pk")
    )
    places = places_of([attempt.job for attempt in attempts])
    effects = []
    for attempt in attempts:
        job = attempt.job
        place = next((one for one in places.get(job.pk, []) if one.attempt.pk == attempt.pk), None)
        loss = loss_of(job, place, max(now, deadline_at))
        effects.append(
            Effect(
                label=job.full_name if attempt.is_visible else job.team.slug,
                url=reverse("jobs:detail", args=[job.uid]) if attempt.is_visible else "",
                gpus=gpus[attempt.pk],
                what=_what(attempt, deadline_at),
                lost_gpu_hours=round(loss.gpu_hours, 2) if loss and not _ends_before(attempt, deadline_at) else None,
            )
        )
    return effects


def _what(attempt: Attempt, deadline_at: datetime) -> str:
    job = attempt.job
    if job.state == Job.State.STOPPING:
        return _("is being stopped already")
    if job.is_service:
        return _("its replicas here move to other nodes, one by one")
    if attempt.started_at is None:
        return _("has not started: it gives its place back at once")
    if _ends_before(attempt, deadline_at):
        return _("reaches its time limit before that")
    return _("is stopped whole, all %(gpus)d GPUs, and queues again elsewhere") % {"gpus": job.gpus}


def _ends_before(attempt: Attempt, deadline_at: datetime) -> bool:
    limit = attempt.job.spec.get("max_runtime_s")
    if not limit or attempt.started_at is None:
        return False
    return attempt.started_at + timedelta(seconds=limit) <= deadline_at
