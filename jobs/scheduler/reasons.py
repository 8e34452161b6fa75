"""Why a workload waits: a code and the numbers that prove it; sentences are made in jobs.explain."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ReasonCode(StrEnum):
    """One code per kind of obstacle; the keys of `Reason.numbers` are listed per code.

    All GPU numbers are whole GPUs of the named flavor, memory is in MiB, CPU in milli.
    """

    BLOCKED = "blocked"  # cause, and whatever its giver adds; decide adds position, gpus_ahead
    ACCELERATOR = "accelerator"  # flavor, nodes (hosts looked at), asked
    NEVER_FITS = "never_fits"  # limit (see NeverLimit), most, asked, flavor, where
    TURN = "turn"  # position, gpus_ahead, started_ahead, gpus_started, asked, flavor
    QUOTA = "quota"  # queue (the queue or cohort that binds), used, nominal, asked, flavor
    CPU = "cpu"  # nodes, needed, best_free, flavor
    MEMORY = "memory"  # nodes, needed, best_free, flavor
    PODS = "pods"  # nodes, needed, best_free, flavor
    CORDONED = "cordoned"  # usable, total, asked, flavor
    NOT_READY = "not_ready"  # nodes, usable, total, asked, flavor
    CLUSTER_STALE = "cluster_stale"  # cluster, free, asked, flavor
    CAPACITY = "capacity"  # free, asked, flavor
    FRAGMENTATION = "fragmentation"  # level, fits, needed, free_nodes, free, asked, flavor, fit_<level>...


class NeverLimit(StrEnum):
    """Which limit an impossible request breaks: the value of `limit` in a NEVER_FITS reason."""

    LEVEL = "level"  # no cluster knows the required topology level
    QUOTA = "quota"  # least GPUs to start > nominal of the queue or cohort `where`
    GPUS_PER_NODE = "gpus_per_node"  # GPUs per worker > most on any node
    CPU = "cpu"  # milli CPU per worker > most on any node with the GPUs
    MEMORY = "memory"  # MiB per worker > most on any node with the GPUs
    PODS = "pods"  # no node with the GPUs takes a pod
    WORKERS = "workers"  # least workers to start > what the best empty domain of level `where` holds


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and its evidence. Strings in `numbers` are names of rows (flavor, queue, cluster, level)."""

    code: ReasonCode
    numbers: Mapping[str, int | str]
