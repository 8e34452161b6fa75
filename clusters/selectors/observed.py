"""What the clusters report of our objects."""

from django.db.models import F, QuerySet

from clusters.models import ObservedObject, ObservedPod


def pods_of(run: str, attempt: int) -> QuerySet[ObservedPod]:
    """Return all pods of an attempt, by rank; those that are gone keep their last state."""
    return ObservedPod.objects.filter(run=run, attempt=attempt).order_by(F("rank").asc(nulls_last=True), "name", "pk")


def object_of(run: str, attempt: int) -> ObservedObject | None:
    """Return the object of an attempt that is there, or None."""
    return ObservedObject.objects.filter(run=run, attempt=attempt, gone_at=None).order_by("pk").first()
