"""Clusters for people: the list, and one of them with its levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Q, QuerySet

from clusters.models import Cluster, ClusterFinding, TopologyLevel
from clusters.selectors.capacity import FlavorCapacity, free_by_cluster, is_stale
from clusters.selectors.findings import as_findings, stored_findings


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One line of the list."""

    cluster: Cluster
    state: str
    nodes: int
    nodes_ready: int
    capacities: Sequence[FlavorCapacity]


@dataclass(frozen=True, slots=True)
class ClusterInDetail:
    """A cluster with what its page shows of it."""

    cluster: Cluster
    levels: Sequence[TopologyLevel]
    findings: Sequence[ClusterFinding]


def state_of(cluster: Cluster, now: datetime) -> str:
    """Return one word for how the cluster stands: disabled, stale or healthy."""
    if not cluster.is_enabled:
        return "disabled"
    return "stale" if is_stale(cluster, now) else "healthy"


def cluster_rows(now: datetime) -> list[ClusterRow]:
    """Return all clusters by name, in two queries."""
    here = Q(nodes__gone_at=None)
    clusters = Cluster.objects.order_by("name").annotate(
        all_nodes=Count("nodes", filter=here), ready_nodes=Count("nodes", filter=here & Q(nodes__is_ready=True))
    )
    capacities = free_by_cluster(now)
    return [
        ClusterRow(
            cluster, state_of(cluster, now), cluster.all_nodes, cluster.ready_nodes, capacities.get(cluster.pk, [])
        )
        for cluster in clusters
    ]


def cluster_in_detail(name: str) -> ClusterInDetail | None:
    """Return a cluster, its levels (widest first) and findings in one query; None if there is none of that name."""
    # One row a level, and one for a cluster without any.
    rows = list(
        Cluster.objects.filter(name=name)
        .annotate(depth=F("levels__depth"), level_name=F("levels__name"), label_key=F("levels__label_key"))
        .annotate(stored_findings=stored_findings())
        .order_by("depth")
    )
    if not rows:
        return None
    levels = [
        TopologyLevel(cluster=rows[0], depth=row.depth, name=row.level_name, label_key=row.label_key)
        for row in rows
        if row.depth is not None
    ]
    return ClusterInDetail(rows[0], levels, as_findings(rows[0].stored_findings))


def enabled_clusters() -> QuerySet[Cluster]:
    """Return the clusters that take part, by name, with their levels at hand."""
    return Cluster.objects.filter(is_enabled=True).prefetch_related("levels").order_by("name")
