"""Take and give back what an attempt holds: rows, node counters and quota move together or not at all."""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import F

from clusters.models import NodeAccelerator
from jobs.models import Allocation
from portal.core import clock
from portal.core.errors import DomainError
from quotas.services import usage


class PlaceTakenError(DomainError):
    """A node of the plan no longer has the GPUs that the snapshot showed."""

    code = "place_taken"


def hold(allocations: Sequence[Allocation]) -> None:
    """Hold the places of one admission, inside the caller's transaction.

    Raise PlaceTakenError or quotas' QuotaExceededError; the caller's transaction must then roll back.
    """
    # One fixed order of locks in every transaction: quota first, then nodes by id.
    for (queue_id, flavor_id), gpus in sorted(_by_quota(allocations).items()):
        usage.reserve(queue_id, flavor_id, gpus)
    for (node_id, flavor_id), gpus in sorted(_by_node(allocations).items()):
        room = NodeAccelerator.objects.filter(
            node_id=node_id, flavor_id=flavor_id, allocatable__gte=F("held") + F("foreign") + gpus
        )
        if not room.update(held=F("held") + gpus):
            raise PlaceTakenError(f"node {node_id} has no {gpus} GPUs left")
    Allocation.objects.bulk_create(allocations)


@transaction.atomic
def release(allocations: Iterable[Allocation]) -> int:
    """Give back allocations that are proven over; each counts once, however often this runs. Return how many did."""
    ids = sorted(allocation.pk for allocation in allocations)
    held = list(Allocation.objects.select_for_update(no_key=True).filter(pk__in=ids, released_at=None).order_by("pk"))
    if not held:
        return 0
    Allocation.objects.filter(pk__in=[row.pk for row in held]).update(released_at=clock.now())
    for (queue_id, flavor_id), gpus in sorted(_by_quota(held).items()):
        usage.release(queue_id, flavor_id, gpus)
    for (node_id, flavor_id), gpus in sorted(_by_node(held).items()):
        NodeAccelerator.objects.filter(node_id=node_id, flavor_id=flavor_id).update(held=F("held") - gpus)
    return len(held)


def _by_quota(allocations: Iterable[Allocation]) -> Counter[tuple[int, int]]:
    sums: Counter[tuple[int, int]] = Counter()
    for row in allocations:
        sums[row.queue_id, row.flavor_id] += row.gpus
    return +sums  # pods beside the workers have no GPUs


def _by_node(allocations: Iterable[Allocation]) -> Counter[tuple[int, int]]:
    sums: Counter[tuple[int, int]] = Counter()
    for row in allocations:
        sums[row.node_id, row.flavor_id] += row.gpus
    return +sums  # pods beside the workers have no GPUs
