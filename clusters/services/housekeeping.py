"""Drop rows that nothing needs any more."""

from datetime import datetime, timedelta

from django.db.models import Q

from clusters.models import GpuSample, JobMinute, Node, NodeEvent, NodeFault, NodeMinute, ObservedObject, ObservedPod
from clusters.selectors.trouble import frequent
from portal.core.housekeeping import delete_batch

GONE_FOR = timedelta(days=1)
EVENTS_FOR = timedelta(days=90)
SAMPLES_FOR = timedelta(minutes=30)
MINUTES_FOR = timedelta(days=30)


def prune(now: datetime) -> int:
    """Delete what is too old and return how many rows went."""
    _forgive(now)
    gone = Q(gone_at__lt=now - GONE_FOR)
    return (
        delete_batch(ObservedPod.objects.filter(gone))
        + delete_batch(ObservedObject.objects.filter(gone))
        + delete_batch(NodeEvent.objects.filter(at__lt=now - EVENTS_FOR))
        + delete_batch(NodeFault.objects.filter(cleared_at__lt=now - EVENTS_FOR))
        + delete_batch(GpuSample.objects.filter(at__lt=now - SAMPLES_FOR))
        + delete_batch(JobMinute.objects.filter(minute__lt=now - MINUTES_FOR))
        + delete_batch(NodeMinute.objects.filter(minute__lt=now - MINUTES_FOR))
    )


def _forgive(now: datetime) -> None:
    """A node whose faults are long over needs nobody's look any more."""
    ids = list(Node.objects.filter(fails_often=True).values_list("pk", flat=True))
    calm = set(ids) - {node.pk for node, _faults in frequent(ids, now)}
    Node.objects.filter(pk__in=calm).update(fails_often=False)
