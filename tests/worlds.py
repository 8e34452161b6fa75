"""Literal worlds for the scheduler's tests: names in, a snapshot of arrays out.

world(nodes=[node("n1", rack="r1"), node("n2", rack="r1", free=3)], jobs=[job("a", workers=2)])
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.scheduler.types import (
    NO_DOMAIN,
    NODE,
    Hold,
    Hosts,
    IntArray,
    Offers,
    Outcome,
    QuotaTree,
    Reason,
    Snapshot,
    SpreadPolicy,
    TopologyMode,
    Workload,
)

A100 = "A100"
PLENTY_OF_QUOTA = 100_000


@dataclass(frozen=True)
class NodeIn:
    """A node as a test writes it: free amounts default to the totals; labels: level name -> value."""

    id: str
    cluster: str
    labels: dict[str, str]
    gpus: dict[str, int]
    free: dict[str, int]
    cpu: int = 128_000
    memory: int = 1_024_000
    pods: int = 110
    cpu_free: int | None = None
    memory_free: int | None = None
    pods_free: int | None = None
    hold: Hold = Hold.NONE
    taint: int = 0


@dataclass(frozen=True)
class QueueIn:
    """A queue or cohort: nominal and used whole GPUs per flavor name; missing flavors have `default`."""

    id: str
    parent: str | None = None
    nominal: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    default: int = 0


@dataclass(frozen=True)
class JobIn:
    """A job as a test writes it; `order` is its submission time."""

    id: str
    queue: str = "q"
    workers: int = 1
    least: int | None = None
    gpus: int = 8
    flavors: tuple[str, ...] = (A100,)
    priority: int = 0
    order: float = 0.0
    cpu: int = 0
    memory: int = 0
    mode: TopologyMode = TopologyMode.PREFER
    level: str = ""
    spread: SpreadPolicy = SpreadPolicy.AUTO
    service: bool = False
    clusters: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    tolerated: frozenset[int] = frozenset()
    blocked: Reason | None = None


job = JobIn
queue = QueueIn


def node(
    name: str,
    *,
    cluster: str = "c1",
    gpus: int | dict[str, int] = 8,
    free: int | dict[str, int] | None = None,
    zone: str | None = None,
    block: str | None = None,
    rack: str | None = None,
    **rest: object,
) -> NodeIn:
    """Write a node; a plain number of GPUs means A100s."""
    total = {A100: gpus} if isinstance(gpus, int) else gpus
    left = {A100: free} if isinstance(free, int) else total if free is None else free
    labels = {level: value for level, value in (("zone", zone), ("block", block), ("rack", rack)) if value}
    return replace(NodeIn(name, cluster, labels, total, left), **rest)  # type: ignore[arg-type]  # test kwargs


def world(
    *,
    nodes: Sequence[NodeIn],
    jobs: Sequence[JobIn] = (),
    queues: Sequence[QueueIn] = (QueueIn("q", default=PLENTY_OF_QUOTA),),
    levels: tuple[str, ...] = ("zone", "block", "rack", NODE),
    flavors: Sequence[str] = (),
    clusters: Sequence[str] = (),
) -> Snapshot:
    """Build the snapshot. Flavors and clusters come from the nodes unless named."""
    cluster_names = tuple(clusters) or tuple(dict.fromkeys(one.cluster for one in nodes))
    flavor_names = tuple(flavors) or tuple(
        dict.fromkeys([A100, *(name for one in nodes for name in one.gpus), *(f for one in jobs for f in one.flavors)])
    )
    return Snapshot(
        clusters=cluster_names,
        levels=levels,
        flavors=flavor_names,
        hosts=_hosts(nodes, cluster_names, levels),
        offers=_offers(nodes, flavor_names),
        quota=_quota(queues, flavor_names),
        workloads=tuple(_workload(one, nodes, queues, cluster_names, flavor_names) for one in jobs),
    )


def placed(outcome: Outcome, snapshot: Snapshot) -> dict[str, list[str]]:
    """Return workload -> host ids, one per rank."""
    ids = snapshot.hosts.ids
    return {one.workload: [ids[host] for host in one.placement.hosts] for one in outcome.admissions}


def reason_of(outcome: Outcome, workload: str) -> Reason:
    """Return why a workload waits. Raise StopIteration if it was admitted."""
    return next(wait.reason for wait in outcome.waits if wait.workload == workload)


def _column(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _hosts(nodes: Sequence[NodeIn], clusters: tuple[str, ...], levels: tuple[str, ...]) -> Hosts:
    def free(value: int | None, total: int) -> int:
        return total if value is None else value

    return Hosts(
        ids=tuple(one.id for one in nodes),
        cluster=_column([clusters.index(one.cluster) for one in nodes]),
        hold=_column([one.hold for one in nodes]),
        taints=_column([one.taint for one in nodes]),
        cpu_milli=_column([free(one.cpu_free, one.cpu) for one in nodes]),
        memory_mib=_column([free(one.memory_free, one.memory) for one in nodes]),
        pods=_column([free(one.pods_free, one.pods) for one in nodes]),
        cpu_milli_total=_column([one.cpu for one in nodes]),
        memory_mib_total=_column([one.memory for one in nodes]),
        pods_total=_column([one.pods for one in nodes]),
        domains=_domains(nodes, levels),
    )


def _domains(nodes: Sequence[NodeIn], levels: tuple[str, ...]) -> IntArray:
    """Number the domains in order of appearance, one counter for all clusters and levels."""
    numbers: dict[tuple[str, ...], int] = {}
    domains = np.full((len(nodes), len(levels)), NO_DOMAIN, dtype=np.int64)
    for row, one in enumerate(nodes):
        path: tuple[str, ...] = (one.cluster,)
        for column, level in enumerate(levels):
            value = one.id if level == NODE else one.labels.get(level)
            path = (*path, f"{level}={value}")
            if value is not None:
                domains[row, column] = numbers.setdefault(path, len(numbers))
    return domains


def _offers(nodes: Sequence[NodeIn], flavors: tuple[str, ...]) -> Offers:
    rows = [
        (host, flavors.index(name), one.free.get(name, 0), total)
        for host, one in enumerate(nodes)
        for name, total in one.gpus.items()
    ]
    host, flavor, free, total = (_column([row[index] for row in rows]) for index in range(4))
    return Offers(host=host, flavor=flavor, free=free, total=total)


def _quota(queues: Sequence[QueueIn], flavors: tuple[str, ...]) -> QuotaTree:
    names = [one.id for one in queues]
    shape = (len(queues), len(flavors))
    return QuotaTree(
        ids=tuple(names),
        parent=_column([names.index(one.parent) if one.parent else -1 for one in queues]),
        nominal=_column([one.nominal.get(f, one.default) for one in queues for f in flavors]).reshape(shape),
        used=_column([one.used.get(f, 0) for one in queues for f in flavors]).reshape(shape),
    )


def _workload(
    one: JobIn,
    nodes: Sequence[NodeIn],
    queues: Sequence[QueueIn],
    clusters: tuple[str, ...],
    flavors: tuple[str, ...],
) -> Workload:
    return Workload(
        id=one.id,
        queue=[each.id for each in queues].index(one.queue),
        priority=one.priority,
        submitted_at=one.order,
        workers=one.workers,
        min_workers=one.workers if one.least is None else one.least,
        gpus_per_worker=one.gpus,
        flavors=tuple(flavors.index(name) for name in one.flavors),
        cpu_milli=one.cpu,
        memory_mib=one.memory,
        topology=one.mode,
        level=one.level,
        spread=one.spread,
        is_service=one.service,
        clusters=tuple(clusters.index(name) for name in one.clusters),
        excluded_hosts=tuple(i for i, each in enumerate(nodes) if each.id in one.excluded),
        tolerated=one.tolerated,
        blocked=one.blocked,
    )
