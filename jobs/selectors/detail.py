"""What the page of one job shows, in few queries."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import (
    BooleanField,
    F,
    Func,
    IntegerField,
    JSONField,
    Manager,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from clusters.selectors.capacity import is_stale
from jobs.jobspec.difference import Difference, differences
from jobs.models import Job
from jobs.selectors.jobs import jobs_visible_to
from jobs.selectors.placement import AttemptPlace, places_of
from jobs.selectors.rows import counts_of, shape_of
from jobs.selectors.standing import Answer, Loss, answer_of, loss_of
from portal.core import clock
from portal.identity.models import User
from quotas.models import Quota, QuotaUsage

Fact = dict[str, object]


@dataclass(frozen=True, slots=True)
class JobPage:
    """The head of the page and what all its tabs share. `place` is the newest attempt."""

    job: Job
    places: list[AttemptPlace]
    answer: Answer
    shape: str
    held: int
    running: int
    is_stale: bool
    is_simulated: bool
    loss: Loss | None
    queue_used: int
    queue_nominal: int

    @property
    def place(self) -> AttemptPlace | None:
        """Where the job is or was last."""
        return self.places[0] if self.places else None

    @property
    def heard_at(self) -> datetime | None:
        """When its cluster was last heard of."""
        return self.place.attempt.cluster.heard_at if self.place else None


def visible_job(user: User, uid: str) -> QuerySet[Job]:
    """The job with its parent and the use of its queue, if the person may see it. One query."""
    return (
        jobs_visible_to(user)
        .filter(uid=uid)
        .select_related("parent")
        .annotate(queue_used=_sum(QuotaUsage.objects, "used"), queue_nominal=_sum(Quota.objects, "nominal"))
    )


def job_page(job: Job) -> JobPage:
    """Read the rest, in three queries. `job` comes from `visible_job`."""
    places = places_of([job], newest_only=False).get(job.pk, [])
    place = places[0] if places else None
    held, running = counts_of(job, place)
    now = clock.now()
    return JobPage(
        job=job,
        places=places,
        answer=answer_of(job, place),
        shape=shape_of(job, place),
        held=held,
        running=running,
        is_stale=bool(place and job.state in Job.HOLDING and is_stale(place.attempt.cluster, now)),
        is_simulated=bool(place and place.attempt.cluster.is_simulated),
        loss=loss_of(job, place, now),
        queue_used=getattr(job, "queue_used", 0),
        queue_nominal=getattr(job, "queue_nominal", 0),
    )


def facts_of(page: JobPage) -> list[Fact]:
    """Return the strip of facts."""
    job = page.job
    limit = job.spec.get("max_runtime_s")
    return [
        {"label": _("Asked for"), "value": job.gpus, "note": f"GPU, {page.shape}"},
        {
            "label": _("Queue"),
            "value": job.queue.name,
            "note": _("%(used)d of %(nominal)d used") % {"used": page.queue_used, "nominal": page.queue_nominal},
            "id": f"queue-{job.uid}",
            "v": f"{page.queue_used}-{page.queue_nominal}",
        },
        {"label": _("Priority"), "value": job.priority_class.name, "note": job.priority},
        *([] if job.is_service else [{"label": _("Time limit"), "seconds": limit, "value": _("none")}]),
        {"label": _("Owner"), "value": job.owner.username, "note": job.team.name},
        {"label": _("Created"), "at": job.created_at},
    ]


def changes_of(job: Job) -> list[Difference]:
    """Return what differs from the run that this one repeats."""
    return differences(job.parent.spec, job.spec) if job.parent else []


def _sum(rows: Manager[Quota] | Manager[QuotaUsage], column: str) -> Coalesce:
    """Sum over the job's queue, of the flavors that it asks for; without a wish, of all."""
    wishes = OuterRef("flavor_ids")
    count = Func(wishes, function="jsonb_array_length", output_field=IntegerField())
    flavor = Func(F("flavor_id"), function="to_jsonb", output_field=JSONField())
    is_wished = Func(wishes, flavor, template="(%(expressions)s)", arg_joiner=" @> ", output_field=BooleanField())
    own = rows.filter(queue=OuterRef("queue")).annotate(wishes=count, is_wished=is_wished)
    total = own.filter(Q(wishes=0) | Q(is_wished=True)).values("queue").annotate(total=Sum(column)).values("total")
    return Coalesce(Subquery(total, output_field=IntegerField()), 0)
