"""The scheduler's values: frozen, without behaviour, columns instead of objects.

Axis letters: H hosts, P offers, L topology levels, F flavors, Q quota nodes, W workloads.
Units: GPUs are whole devices (or whole MIG slices) of one flavor, CPU is in milli, memory in MiB.
Every `int` that points somewhere is an index into the tuple or axis named beside it. Rows may come in any
order: `decide` sorts by identifier, so identifiers must be unique (host ids within their cluster).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

UNLIMITED = -1  # nominal of a cohort that sets no cap of its own
NO_DOMAIN = -1  # the host lacks the label of this level
NO_FLAVOR = -1  # flavor of a placement without GPUs
NODE = "node"  # name of the narrowest level: one host
CLUSTER = "cluster"  # name of the widest place, above all levels


class Hold(IntEnum):
    """Why a host takes nothing now."""

    NONE = 0
    CORDONED = 1
    STALE = 2
    NOT_READY = 3
    TOO_OLD = 4  # of a cluster whose Kubernetes cannot start gangs


class TopologyMode(StrEnum):
    """How a gang's place depends on topology."""

    NONE = "none"  # best fit over hosts, levels ignored
    PREFER = "prefer"  # the lowest level that holds the gang, wider accepted
    REQUIRE = "require"  # never wider than the named level


class SpreadPolicy(StrEnum):
    """Whether workers huddle or keep apart."""

    AUTO = "auto"  # services spread, training packs
    PACK = "pack"
    SPREAD = "spread"


class ReasonCode(StrEnum):
    """One code per kind of obstacle; the keys of `Reason.numbers` are listed per code.

    All GPU numbers are whole GPUs of the named flavor, memory is in MiB, CPU in milli.
    """

    BLOCKED = "blocked"  # cause, and whatever its giver adds; decide adds position, gpus_ahead
    ACCELERATOR = "accelerator"  # flavor, nodes (in the allowed clusters), asked
    NEVER_FITS = "never_fits"  # limit (a NeverLimit), most, asked, flavor, where
    TURN = "turn"  # position, gpus_ahead, started_ahead, gpus_started, asked, flavor
    QUOTA = "quota"  # queue (the queue or cohort that binds), used, nominal, asked, flavor
    CPU = "cpu"  # nodes (short of it), needed, best_free, fits, workers, flavor
    MEMORY = "memory"  # as CPU
    PODS = "pods"  # as CPU
    CORDONED = "cordoned"  # nodes (cordoned or tainted), usable, total, asked, flavor
    NOT_READY = "not_ready"  # nodes, usable, total, asked, flavor
    CLUSTER_STALE = "cluster_stale"  # cluster, free (when last heard of), asked, flavor
    CLUSTER_TOO_OLD = "cluster_too_old"  # as CLUSTER_STALE
    CAPACITY = "capacity"  # free, asked, flavor
    FRAGMENTATION = "fragmentation"  # level, fits, workers, free_nodes, free, asked, flavor, fit_<level>...


class NeverLimit(StrEnum):
    """Which limit an impossible request breaks: the value of `limit` in a NEVER_FITS reason."""

    LEVEL = "level"  # no cluster knows the required topology level
    QUOTA = "quota"  # least GPUs to start > nominal of the queue or cohort `where`
    GPUS_PER_NODE = "gpus_per_node"  # GPUs per worker > most on any node
    CPU = "cpu"  # milli CPU per worker > most on any node with the GPUs
    MEMORY = "memory"  # MiB per worker > most on any node with the GPUs
    PODS = "pods"  # no node with the GPUs takes a pod
    WORKERS = "workers"  # least workers to start > what the best empty domain of level `where` holds


class Reason(NamedTuple):
    """A code and its evidence. Strings in `numbers` are names of rows (flavor, queue, cluster, level)."""

    code: ReasonCode
    numbers: Mapping[str, int | str]


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """One row per host.

    ids: (H,) unique within a cluster; ties end here. cluster: (H,) index into Snapshot.clusters.
    hold: (H,) a `Hold`. taints: (H,) index of the host's set of NoSchedule taints, 0 = none.
    cpu_milli, memory_mib, pods: (H,) free now (negative when others over-commit); *_total: (H,) allocatable.
    domains: (H, L) index of the host's domain at each level of Snapshot.levels, unique over clusters and
    levels, NO_DOMAIN = no label. The last column (node) is not read: every host is its own.
    """

    ids: tuple[str, ...]
    cluster: IntArray
    hold: IntArray
    taints: IntArray
    cpu_milli: IntArray
    memory_mib: IntArray
    pods: IntArray
    cpu_milli_total: IntArray
    memory_mib_total: IntArray
    pods_total: IntArray
    domains: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """One row per (host, flavor): (P,) each. A host with several MIG profiles has several rows."""

    host: IntArray
    flavor: IntArray
    free: IntArray
    total: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class QuotaTree:
    """Cohorts and, as leaves, queues.

    ids: (Q,) unique names, shown to people. parent: (Q,) index, -1 = root.
    nominal: (Q, F) whole GPUs, 0 = none, UNLIMITED only on cohorts. A parent's cap binds its whole subtree.
    used: (Q, F) whole GPUs held by the jobs of this very node; `decide` adds them up the tree, so a cohort's
    own row is 0.
    """

    ids: tuple[str, ...]
    parent: IntArray
    nominal: IntArray
    used: IntArray


@dataclass(frozen=True, slots=True)
class Workload:
    """A waiting job: `workers` equal pods that start together (at least `min_workers` of them).

    flavors: indices in order of preference; may be empty only without GPUs.
    cpu_milli, memory_mib: per worker. level: one of Snapshot.levels, or CLUSTER.
    clusters: allowed ones, empty = any. tolerated: indices of taint sets.
    submitted_at: seconds since the epoch. blocked: the caller's reason why it must not start now.
    Invariant, kept by the caller: 1 <= min_workers <= workers; amounts >= 0.
    """

    id: str
    queue: int
    priority: int
    submitted_at: float
    workers: int
    min_workers: int
    gpus_per_worker: int
    flavors: tuple[int, ...]
    cpu_milli: int
    memory_mib: int
    topology: TopologyMode
    level: str
    spread: SpreadPolicy
    is_service: bool = False
    clusters: tuple[int, ...] = ()
    excluded_hosts: tuple[int, ...] = ()
    tolerated: frozenset[int] = frozenset()
    blocked: Reason | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything a decision depends on. levels: widest first, the last is NODE."""

    clusters: tuple[str, ...]
    levels: tuple[str, ...]
    flavors: tuple[str, ...]
    hosts: Hosts
    offers: Offers
    quota: QuotaTree
    workloads: tuple[Workload, ...]


class Placement(NamedTuple):
    """Where a gang goes.

    flavor: index, NO_FLAVOR without flavors. level: the lowest level whose one domain holds all ranks,
    CLUSTER if none does. hosts: one index per rank; neighbouring ranks are on neighbouring hosts.
    """

    flavor: int
    cluster: int
    level: str
    hosts: tuple[int, ...]


class Admission(NamedTuple):
    """A workload that starts now, with `workers` pods."""

    workload: str
    workers: int
    placement: Placement


class Wait(NamedTuple):
    """A workload that waits.

    position: 1 = the first of those that still wait in its queue, None = it can never start, so it is nobody's
    predecessor either. gpus_ahead: GPUs asked by those before it.
    """

    workload: str
    reason: Reason
    position: int | None
    gpus_ahead: int


class Outcome(NamedTuple):
    """One entry per workload of the snapshot, in the order in which they were decided."""

    admissions: tuple[Admission, ...]
    waits: tuple[Wait, ...]
