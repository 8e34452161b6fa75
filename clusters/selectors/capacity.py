"""How many GPUs there are, of which flavor, and how many of them can be had now."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, Greatest

from clusters.manifests.versions import TOO_OLD
from clusters.models import Cluster, NodeAccelerator, closed_nodes


@dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """GPUs of one flavor on `nodes` nodes, in whole GPUs.

    `capacity` is built in, `allocatable` works, `usable` works on nodes that take pods now; of these, `free` is
    neither held by us nor taken by others. `held` and `foreign` count all nodes.
    """

    flavor_id: int
    name: str
    title: str
    rank: int = 0
    nodes: int = 0
    capacity: int = 0
    allocatable: int = 0
    usable: int = 0
    held: int = 0
    foreign: int = 0
    free: int = 0

    def __add__(self, other: "FlavorCapacity") -> "FlavorCapacity":
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in _SUMS})


_SUMS = ("nodes", "capacity", "allocatable", "usable", "held", "foreign", "free")


def stale_cluster_ids(now: datetime) -> set[int]:
    """Return the clusters that were not heard of lately, or never listed: nothing is placed or released there."""
    return set(Cluster.objects.filter(stale_clusters(now)).values_list("pk", flat=True))


def heard_clusters(now: datetime) -> list[Cluster]:
    """Return the clusters in use that can be asked now, by name."""
    return list(Cluster.objects.filter(is_enabled=True).exclude(pk__in=stale_cluster_ids(now)).order_by("name"))


def is_stale(cluster: Cluster, now: datetime) -> bool:
    """Return whether this cluster was not heard of lately, or never listed."""
    if cluster.heard_at is None or cluster.synced_at is None:
        return True
    return not _heard_since(now) <= cluster.heard_at <= _heard_before(now)


def free_by_flavor(now: datetime, *, clusters: Collection[int] | None = None) -> list[FlavorCapacity]:
    """Return the sums by flavor, in the administrator's order, over all enabled clusters or over these alone."""
    found = free_by_cluster(now)
    return sum_by_flavor(rows for cluster_id, rows in found.items() if clusters is None or cluster_id in clusters)


def sum_by_flavor(groups: Iterable[Iterable[FlavorCapacity]]) -> list[FlavorCapacity]:
    """Return the sums by flavor over the rows of many clusters, in the administrator's order."""
    sums: dict[int, FlavorCapacity] = {}
    for rows in groups:
        for row in rows:
            sums[row.flavor_id] = sums[row.flavor_id] + row if row.flavor_id in sums else row
    return sorted(sums.values(), key=lambda row: (row.rank, row.name))


def free_by_cluster(now: datetime) -> dict[int, list[FlavorCapacity]]:
    """Return the sums by flavor of each enabled cluster that has GPUs, by the cluster's id. One query."""
    takes_pods = open_nodes(now, "node__")
    free = Greatest(F("allocatable") - F("held") - F("foreign"), 0)
    rows = (
        # A flavor that a node has lost keeps its row, at zero: it is no node of that flavor any more.
        NodeAccelerator.objects.filter(node__gone_at=None, node__cluster__is_enabled=True, capacity__gt=0)
        .values_list("node__cluster_id", "flavor_id", "flavor__name", "flavor__title", "flavor__rank")
        .annotate(
            # In the order of the fields of FlavorCapacity.
            all_nodes=Count("pk"),
            all_capacity=Sum("capacity"),
            all_allocatable=Sum("allocatable"),
            all_usable=Coalesce(Sum("allocatable", filter=takes_pods), 0),
            all_held=Sum("held"),
            all_foreign=Sum("foreign"),
            all_free=Coalesce(Sum(free, filter=takes_pods), 0),
        )
        .order_by("node__cluster_id", "flavor__rank", "flavor__name")
    )
    found: dict[int, list[FlavorCapacity]] = {}
    for cluster_id, *values in rows:
        found.setdefault(cluster_id, []).append(FlavorCapacity(*values))
    return found


def open_nodes(now: datetime, prefix: str = "") -> Q:
    """The condition that something new may be placed on a node; `prefix` leads to it from another row."""
    return Q(**{f"{prefix}is_ready": True}) & ~closed_nodes(prefix) & ~closed_clusters(now, f"{prefix}cluster__")


def stale_clusters(now: datetime, prefix: str = "") -> Q:
    """The condition that a cluster was not heard of lately; `prefix` leads to it from another row."""
    return (
        Q(**{f"{prefix}heard_at": None})
        | Q(**{f"{prefix}synced_at": None})
        | Q(**{f"{prefix}heard_at__lt": _heard_since(now)})
        | Q(**{f"{prefix}heard_at__gt": _heard_before(now)})
    )


def closed_clusters(now: datetime, prefix: str = "") -> Q:
    """The condition that nothing is placed on a cluster: it was not heard of lately, or its Kubernetes is too old."""
    return stale_clusters(now, prefix) | Q(**{f"{prefix}kubernetes_version__regex": TOO_OLD})


def _heard_before(now: datetime) -> datetime:
    """What was heard later than that was heard before our clock was set back: nobody knows when."""
    return now + timedelta(seconds=settings.MUSTER_STALE_AFTER_S)


def _heard_since(now: datetime) -> datetime:
    return now - timedelta(seconds=settings.MUSTER_STALE_AFTER_S)
