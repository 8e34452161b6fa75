"""What the page of one job shows, in few queries."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Manager, OuterRef, QuerySet
from django.db.models.functions import JSONObject
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
class QueueUse:
    """What the job's queue uses and has of the flavor that the job holds, or asks for first; empty: of all flavors."""

    flavor: str
    used: int
    nominal: int


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
    queue: QueueUse

    @property
    def place(self) -> AttemptPlace | None:
        """Where the job is or was last."""
        return self.places[0] if self.places else None

    @property
    def heard_at(self) -> datetime | None:
        """When its cluster was last heard from."""
        return self.place.attempt.cluster.heard_at if self.place else None


def visible_job(user: User, uid: str) -> QuerySet[Job]:
    """The job with its parent and the use of its queue, if the person may see it. One query."""
    used, nominal = _by_flavor(QuotaUsage.objects, "used"), _by_flavor(Quota.objects, "nominal")
    job = jobs_visible_to(user).filter(uid=uid).select_related("parent")
    return job.annotate(queue_used=used, queue_nominal=nominal)


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
        queue=_queue_use(job, place),
    )


def facts_of(page: JobPage) -> list[Fact]:
    """Return the strip of facts, each a live cell under its id."""
    job = page.job
    limit = job.spec.get("max_runtime_s")
    return [
        _asked(page),
        {"id": "queue", "label": _("Queue"), "value": job.queue.name, "note": _queue_note(page.queue)},
        {"id": "priority", "label": _("Priority"), "value": job.priority_class.name, "note": job.priority},
        *([] if job.is_service else [{"id": "limit", "label": _("Time limit"), "seconds": limit, "value": _("none")}]),
        {"id": "owner", "label": _("Owner"), "value": job.owner.username, "note": job.team.name},
        {"id": "created", "label": _("Created"), "at": job.created_at},
    ]


def changes_of(job: Job) -> list[Difference]:
    """Return what differs from the run that this one repeats. A run of a schedule is as that says."""
    return differences(job.parent.spec, job.spec) if job.parent and not job.adopts else []


def _asked(page: JobPage) -> Fact:
    job = page.job
    if not job.is_schedule:
        return {"id": "asked", "label": _("Asked for"), "value": job.gpus, "note": f"GPU, {page.shape}"}
    gpus = job.spec.get("workers", 1) * job.gpus_per_worker
    return {"id": "asked", "label": _("Each run asks for"), "value": gpus, "note": f"GPU, {page.shape}"}


def _queue_use(job: Job, place: AttemptPlace | None) -> QueueUse:
    flavor = place.flavor if place else next(iter(job.spec.get("accelerators") or []), "")

    def count(rows: list[dict[str, Any]]) -> int:
        return sum(row["gpus"] for row in rows if not flavor or row["flavor"] == flavor)

    return QueueUse(flavor, count(getattr(job, "queue_used", [])), count(getattr(job, "queue_nominal", [])))


def _queue_note(use: QueueUse) -> str:
    numbers = {"used": use.used, "nominal": use.nominal, "flavor": use.flavor}
    if not use.flavor:
        return _("%(used)d of %(nominal)d used, all GPU types") % numbers
    return _("%(used)d of %(nominal)d %(flavor)s used") % numbers


def _by_flavor(rows: Manager[Quota] | Manager[QuotaUsage], column: str) -> ArraySubquery:
    """Return an amount of the job's queue for each flavor."""
    return ArraySubquery(
        rows.filter(queue=OuterRef("queue"))
        .order_by("flavor_id")
        .values_list(JSONObject(flavor="flavor__name", gpus=column))
    )
