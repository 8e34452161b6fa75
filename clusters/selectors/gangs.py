"""What could start right now: free GPUs by flavor, and the largest gang that one cluster has room for. One query."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F
from django.db.models.functions import Greatest

from clusters.models import NodeAccelerator
from clusters.selectors.capacity import open_nodes


@dataclass(frozen=True, slots=True)
class FlavorNow:
    """One flavor: GPUs that are free, and the largest gang of whole nodes' worth: `workers` with `per_worker` GPUs."""

    name: str
    title: str
    free: int
    usable: int
    workers: int
    per_worker: int

    @property
    def gang(self) -> int:
        """GPUs of the largest gang."""
        return self.workers * self.per_worker


@dataclass(frozen=True, slots=True)
class FreeNow:
    """All flavors in the administrator's order, and the names of the clusters by id."""

    flavors: list[FlavorNow]
    clusters: dict[int, str]

    @property
    def largest(self) -> FlavorNow | None:
        """The flavor with the largest gang; None while nothing is free."""
        return max((row for row in self.flavors if row.gang), key=lambda row: row.gang, default=None)


def free_now(now: datetime) -> FreeNow:
    """Count nodes by how many GPUs they have free: as many rows as there are such counts, whatever the fleet's size."""
    free = Greatest(F("allocatable") - F("held") - F("foreign"), 0)
    is_open = open_nodes(now, "node__")
    rows = (
        NodeAccelerator.objects.filter(node__gone_at=None, node__cluster__is_enabled=True, capacity__gt=0)
        .annotate(free_here=free, is_open=is_open)
        .values_list(
            "node__cluster_id",
            "node__cluster__name",
            "flavor__rank",
            "flavor__name",
            "flavor__title",
            "is_open",
            "free_here",
            "allocatable",
        )
        .annotate(nodes=Count("pk"))
        .order_by("flavor__rank", "flavor__name", "node__cluster_id")
    )
    clusters: dict[int, str] = {}
    by_flavor: dict[tuple[str, str], list[tuple[int, int, int, int]]] = defaultdict(list)
    for cluster_id, cluster, _rank, name, title, opens, free_here, allocatable, nodes in rows:
        clusters[cluster_id] = cluster
        shares = by_flavor[name, title]
        if opens:
            shares.append((cluster_id, free_here, allocatable, nodes))
    return FreeNow([_flavor(name, title, shares) for (name, title), shares in by_flavor.items()], clusters)


def _flavor(name: str, title: str, shares: list[tuple[int, int, int, int]]) -> FlavorNow:
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for cluster_id, free, _allocatable, nodes in shares:
        counts[cluster_id, free] += nodes
    # Nodes with more free GPUs hold workers of fewer, too; ties go to the larger worker.
    gangs = [
        (sum(nodes for (other, have), nodes in counts.items() if other == cluster_id and have >= free), free)
        for cluster_id, free in counts
        if free
    ]
    workers, per_worker = max(gangs, key=lambda gang: (gang[0] * gang[1], gang[1]), default=(0, 0))
    return FlavorNow(
        name=name,
        title=title,
        free=sum(free * nodes for _cluster, free, _allocatable, nodes in shares),
        usable=sum(allocatable * nodes for _cluster, _free, allocatable, nodes in shares),
        workers=workers,
        per_worker=per_worker,
    )
