"""Drop rows that nothing needs any more."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from clusters.models import GpuSample, JobMinute, NodeEvent, NodeMinute, ObservedObject, ObservedPod

GONE_FOR = timedelta(days=1)
EVENTS_FOR = timedelta(days=90)
SAMPLES_FOR = timedelta(minutes=30)
MINUTES_FOR = timedelta(days=30)
# One run deletes at most so many rows of a kind, so that it stays short; the next one goes on.
AT_ONCE = 5_000


def prune(now: datetime) -> int:
    """Delete what is too old and return how many rows went."""
    gone = Q(gone_at__lt=now - GONE_FOR)
    return (
        _delete(ObservedPod.objects.filter(gone))
        + _delete(ObservedObject.objects.filter(gone))
        + _delete(NodeEvent.objects.filter(at__lt=now - EVENTS_FOR))
        + _delete(GpuSample.objects.filter(at__lt=now - SAMPLES_FOR))
        + _delete(JobMinute.objects.filter(minute__lt=now - MINUTES_FOR))
        + _delete(NodeMinute.objects.filter(minute__lt=now - MINUTES_FOR))
    )


def _delete(rows: QuerySet[Any]) -> int:
    oldest = rows.order_by("pk").values("pk")[:AT_ONCE]
    deleted: int = rows.model.objects.filter(pk__in=oldest).delete()[0]
    return deleted
