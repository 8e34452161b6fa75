"""Rows -> the scheduler's frozen arrays, in one repeatable-read transaction and a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from clusters.manifests.pods import standing_keys
from clusters.manifests.versions import is_too_old
from clusters.models import Cluster, Node, NodeAccelerator, ResourceFlavor, TopologyLevel
from clusters.selectors.capacity import stale_cluster_ids
from jobs.engine.taints import TaintSets
from jobs.engine.workloads import Home, Indices, workload_of
from jobs.models import Allocation, Attempt, Job
from jobs.scheduler.types import (
    NO_DOMAIN,
    NODE,
    UNLIMITED,
    Hold,
    Hosts,
    IntArray,
    Offers,
    QuotaTree,
    Snapshot,
)
from portal.core import clock
from quotas.selectors.tree import quota_tree


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot with the keys of the rows behind its indices."""

    snapshot: Snapshot
    cluster_ids: tuple[int, ...]
    dispatches: tuple[str, ...]
    # Whether the cluster of the same index binds PodGroups whole.
    groupings: tuple[bool, ...]
    flavor_ids: tuple[int, ...]
    resource_names: tuple[str, ...]
    links: tuple[str, ...]
    node_ids: tuple[int, ...]
    node_uids: tuple[str, ...]
    jobs: Mapping[str, Job]
    indices: Indices


def load() -> Loaded:
    """Read everything that a cycle depends on, as of one moment."""
    with _one_moment():
        return _load()


def anything_waits() -> bool:
    """Whether a cycle has anything to decide: one query, where a whole snapshot takes a dozen."""
    return _unsated().exists()


@contextmanager
def _one_moment() -> Iterator[None]:
    """Open a read-only transaction in which all queries see the same state of the database."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def _load() -> Loaded:
    clusters = list(Cluster.objects.filter(is_enabled=True).order_by("name"))
    flavors = list(ResourceFlavor.objects.all())
    cluster_index = {cluster.pk: index for index, cluster in enumerate(clusters)}
    flavor_index = {flavor.pk: index for index, flavor in enumerate(flavors)}
    levels, keys = _levels(clusters)
    present = Node.objects.filter(cluster__in=clusters, gone_at=None).defer("conditions", "extended")
    nodes = list(present.order_by("cluster__name", "name"))
    resource_names = tuple(flavor.resource_name for flavor in flavors)
    taints = TaintSets(_tolerated_keys(resource_names))
    hosts = _hosts(nodes, cluster_index, keys, len(levels), taints, _closed(clusters))
    node_index = {node.pk: index for index, node in enumerate(nodes)}
    quota, queue_index = _quota(flavor_index)
    quota_flavors = {
        queue_id: tuple(int(f) for f in np.flatnonzero(quota.nominal[row] > 0)) for queue_id, row in queue_index.items()
    }
    waiting = _waiting_jobs()
    indices = Indices(
        cluster_index, flavor_index, queue_index, node_index, taints, quota_flavors, resource_names, clock.now()
    )
    homes = _homes()
    snapshot = Snapshot(
        clusters=tuple(cluster.name for cluster in clusters),
        levels=levels,
        flavors=tuple(flavor.name for flavor in flavors),
        hosts=hosts,
        offers=_offers(node_index, flavor_index),
        quota=quota,
        workloads=tuple(workload_of(job, missing, homes.get(job.pk), indices) for job, missing in waiting),
    )
    return Loaded(
        snapshot=snapshot,
        cluster_ids=tuple(cluster_index),
        dispatches=tuple(cluster.dispatch for cluster in clusters),
        groupings=tuple(cluster.has_pod_groups for cluster in clusters),
        flavor_ids=tuple(flavor_index),
        resource_names=resource_names,
        links=tuple(flavor.link for flavor in flavors),
        node_ids=tuple(node_index),
        node_uids=tuple(node.uid for node in nodes),
        jobs={job.uid: job for job, _missing in waiting},
        indices=indices,
    )


def _tolerated_keys(resource_names: Iterable[str]) -> frozenset[str]:
    return frozenset(key for name in resource_names for key in standing_keys(name, settings.MUSTER_DOMAIN))


def _levels(clusters: Sequence[Cluster]) -> tuple[tuple[str, ...], Mapping[int, Mapping[int, str]]]:
    """Return the levels of all clusters, widest first, and for each cluster the label key of each level it has.

    Clusters may know different levels: one list holds them all, ordered by how deep each stands anywhere.
    """
    rows = list(TopologyLevel.objects.filter(cluster__in=clusters).exclude(name=NODE))
    depth: dict[str, int] = {}
    for row in rows:
        depth[row.name] = max(depth.get(row.name, 0), row.depth)
    ordered = sorted(depth, key=lambda name: (depth[name], name))
    place = {name: index for index, name in enumerate(ordered)}
    keys: dict[int, dict[int, str]] = defaultdict(dict)
    for row in rows:
        keys[row.cluster_id][place[row.name]] = row.label_key
    return (*ordered, NODE), keys


def _hosts(
    nodes: Sequence[Node],
    cluster_index: Mapping[int, int],
    keys: Mapping[int, Mapping[int, str]],
    levels: int,
    taints: TaintSets,
    closed: Mapping[int, Hold],
) -> Hosts:
    held = _held_by_node()
    none = (0, 0, 0)
    totals = np.array([(n.cpu_milli, n.memory_mib, n.pods) for n in nodes], dtype=np.int64).reshape(-1, 3)
    taken = np.array(
        [
            (n.foreign_cpu_milli + cpu, n.foreign_memory_mib + memory, n.foreign_pods + pods)
            for n in nodes
            for cpu, memory, pods in [held.get(n.pk, none)]
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    free = totals - taken
    return Hosts(
        ids=tuple(node.name for node in nodes),
        cluster=np.array([cluster_index[node.cluster_id] for node in nodes], dtype=np.int64),
        hold=np.array([_hold(node, closed) for node in nodes], dtype=np.int64),
        taints=np.array([taints.index_of(node.taints) for node in nodes], dtype=np.int64),
        cpu_milli=free[:, 0],
        memory_mib=free[:, 1],
        pods=free[:, 2],
        cpu_milli_total=totals[:, 0],
        memory_mib_total=totals[:, 1],
        pods_total=totals[:, 2],
        domains=_domains(nodes, keys, levels),
    )


def _held_by_node() -> Mapping[int, tuple[int, int, int]]:
    rows = (
        Allocation.objects.filter(released_at=None)
        .values_list("node_id")
        .annotate(cpu=Sum("cpu_milli"), memory=Sum("memory_mib"), pods=Count("pk"))
    )
    return {node_id: (cpu, memory, pods) for node_id, cpu, memory, pods in rows}


def _closed(clusters: Iterable[Cluster]) -> Mapping[int, Hold]:
    """Return the clusters that take nothing, whatever their nodes say."""
    stale = dict.fromkeys(stale_cluster_ids(clock.now()), Hold.STALE)
    old = [cluster.pk for cluster in clusters if is_too_old(cluster.kubernetes_version)]
    return {**stale, **dict.fromkeys(old, Hold.TOO_OLD)}


def _hold(node: Node, closed: Mapping[int, Hold]) -> Hold:
    if node.cluster_id in closed:
        return closed[node.cluster_id]
    if not node.is_ready:
        return Hold.NOT_READY
    return Hold.CORDONED if node.is_closed else Hold.NONE


def _domains(nodes: Sequence[Node], keys: Mapping[int, Mapping[int, str]], levels: int) -> IntArray:
    """Number the domains. A domain is told apart by the whole path of labels: rack r1 of block b1 is not that of b2."""
    numbers: dict[tuple[object, ...], int] = {}
    table = np.full((len(nodes), levels), NO_DOMAIN, dtype=np.int64)
    for row, node in enumerate(nodes):
        path: list[str | None] = []
        for level, key in sorted(keys.get(node.cluster_id, {}).items()):
            label = node.labels.get(key)
            path.append(label)
            if label:
                table[row, level] = numbers.setdefault((node.cluster_id, level, *path), len(numbers))
    return table


def _offers(node_index: Mapping[int, int], flavor_index: Mapping[int, int]) -> Offers:
    rows = NodeAccelerator.objects.filter(node__gone_at=None).values_list(
        "node_id", "flavor_id", "allocatable", "foreign", "held"
    )
    table = np.array(
        [
            # Devices that broke under running pods make this negative: then nothing is free.
            (node_index[node], flavor_index[flavor], max(0, allocatable - foreign - held), allocatable)
            for node, flavor, allocatable, foreign, held in rows
            if node in node_index
        ],
        dtype=np.int64,
    ).reshape(-1, 4)
    return Offers(host=table[:, 0], flavor=table[:, 1], free=table[:, 2], total=table[:, 3])


def _quota(flavor_index: Mapping[int, int]) -> tuple[QuotaTree, Mapping[int, int]]:
    """Return the tree and, by key, the row of each queue."""
    rows = quota_tree()
    row_of = {node.id: row for row, node in enumerate(rows.nodes)}
    shape = (len(rows.nodes), len(flavor_index))
    nominal, used = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    nominal[[row for row, node in enumerate(rows.nodes) if not node.is_queue]] = UNLIMITED
    for (node_id, flavor_id), gpus in rows.nominal.items():
        nominal[row_of[node_id], flavor_index[flavor_id]] = gpus
    for (node_id, flavor_id), gpus in rows.used.items():
        # The core adds queues up the tree itself.
        if rows.nodes[row_of[node_id]].is_queue:
            used[row_of[node_id], flavor_index[flavor_id]] = gpus
    parents = [-1 if node.parent is None else row_of[node.parent] for node in rows.nodes]
    names = tuple(node.name if node.is_queue else f"{node.name}/" for node in rows.nodes)
    tree = QuotaTree(ids=names, parent=np.array(parents, dtype=np.int64), nominal=nominal, used=used)
    return tree, {node.pk: row for row, node in enumerate(rows.nodes) if node.is_queue}


def _waiting_jobs() -> list[tuple[Job, int]]:
    """Return queued jobs, and services that hold fewer replicas than they want, with the number that is missing."""
    rows = _unsated().select_related("queue", "team").order_by("pk")
    return [(job, job.missing) for job in rows]


def _unsated() -> QuerySet[Any]:
    queued = Q(state=Job.State.QUEUED)
    growing = Q(state__in=(Job.State.STARTING, Job.State.RUNNING), kind=Job.Kind.INFERENCE, cancel_requested_at=None)
    # Counted for each row alone: grouped, thousands of rows would be sorted by all of their columns.
    holding = Allocation.objects.filter(attempt__job=OuterRef("pk"), released_at=None).order_by()
    held = holding.values("attempt__job").annotate(places=Count("pk")).values("places")
    missing = F("workers") - Coalesce(Subquery(held), 0)
    return Job.objects.filter(queued | growing, workers__gt=0).annotate(missing=missing).filter(missing__gt=0)


def _homes() -> Mapping[int, Home]:
    """Return where each service under way lives, and each run whose Job a schedule made: they fit only there."""
    made = Job.objects.filter(state=Job.State.QUEUED, attempts_made=0).exclude(adopts="")
    adopted = {
        job_id: Home(cluster_ids[0], place["resource_name"])
        for job_id, cluster_ids, place in made.values_list("pk", "cluster_ids", "adopted")
    }
    live = Attempt.objects.exclude(step=Attempt.Step.ENDED).filter(job__kind=Job.Kind.INFERENCE)
    rows = live.values_list("job_id", "cluster_id", "resource_name")
    return adopted | {job_id: Home(cluster_id, resource_name) for job_id, cluster_id, resource_name in rows}
