"""Recompute what the counters should say from the rows that hold, and compare."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db.models import Exists, F, OuterRef, Q, Sum
from django.db.models.functions import Coalesce

from clusters.models import NodeAccelerator, ObservedPod
from jobs.models import Allocation, Attempt, Job
from portal.core import clock
from quotas.drift import recompute_usage

# The mirror is behind the cluster by a moment: a job that started just now may have no pod yet.
SETTLED = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement: what, where, and both numbers."""

    code: str
    subject: str
    expected: int
    found: int

    def as_document(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def findings() -> list[Finding]:
    """Return all disagreements; an empty list is health."""
    return [*_quota(), *_nodes(), *_ended_that_hold(), *_running_without_pods()]


def held_by_queue() -> dict[tuple[int, int], int]:
    """Sum what allocations hold, by (queue, flavor)."""
    rows = Allocation.objects.filter(released_at=None).values_list("queue_id", "flavor_id").annotate(gpus=Sum("gpus"))
    return {(queue_id, flavor_id): gpus for queue_id, flavor_id, gpus in rows}


def _quota() -> Iterator[Finding]:
    for drift in recompute_usage(held_by_queue()):
        yield Finding("quota_usage", f"{drift.node.name} flavor {drift.flavor_id}", drift.held, drift.counted)


def _nodes() -> Iterator[Finding]:
    held = Allocation.objects.filter(node=OuterRef("node"), flavor=OuterRef("flavor"), released_at=None)
    sums = held.order_by().values("node").annotate(gpus=Sum("gpus")).values("gpus")
    rows = NodeAccelerator.objects.select_related("node").annotate(expected=Coalesce(sums, 0))
    for row in rows.exclude(held=F("expected")):
        yield Finding("node_held", row.node.name, row.expected, row.held)


def _ended_that_hold() -> Iterator[Finding]:
    rows = Attempt.objects.filter(step=Attempt.Step.ENDED, allocations__released_at=None, allocations__isnull=False)
    for attempt in rows.distinct():
        yield Finding(
            "ended_attempt_holds", attempt.object_name, 0, attempt.allocations.filter(released_at=None).count()
        )


def _running_without_pods() -> Iterable[Finding]:
    alive = ObservedPod.objects.filter(run=OuterRef("uid"), gone_at=None).exclude(phase__in=("Succeeded", "Failed"))
    rows = Job.objects.filter(state=Job.State.RUNNING, workers__gt=0, started_at__lt=clock.now() - SETTLED)
    for job in rows.filter(~Q(Exists(alive))):
        yield Finding("running_without_pod", job.full_name, job.workers, 0)
