"""How many workers of one shape fit on each host and in each domain.

A host holds min over its resources of free // needed workers, if the workload may use it at all; a domain
holds the sum over its hosts, since a worker is never split. Figures are kept per shape and brought up to date
from the ledger's log: a cycle with many gangs of few shapes touches each host a few times only.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from jobs.scheduler.ledger import Ledger, Stock
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import (
    CLUSTER,
    NO_FLAVOR,
    BoolArray,
    Hold,
    IntArray,
    Snapshot,
    TopologyMode,
    Workload,
)

PLENTY = 1_000_000  # workers on a host when nothing limits them; small enough that sums stay exact
EVERYWHERE = slice(None)


class Shape(NamedTuple):
    """What one worker needs and where it may go: the key under which figures are shared.

    level: number of the required level (its label must exist on the host), 0 = no level required.
    """

    flavor: int
    gpus: int
    cpu: int
    memory: int
    pods: int
    level: int
    clusters: tuple[int, ...]
    excluded: tuple[int, ...]
    tolerated: frozenset[int]


class Opening(IntEnum):
    """Which closed hosts a question treats as open; each includes those before it."""

    NOTHING = 0
    CORDONED = 1  # cordoned, or tainted without a toleration
    NOT_READY = 2
    STALE = 3


_OPENED_HOLDS = {
    Opening.NOTHING: (Hold.NONE,),
    Opening.CORDONED: (Hold.NONE, Hold.CORDONED),
    Opening.NOT_READY: (Hold.NONE, Hold.CORDONED, Hold.NOT_READY),
    Opening.STALE: tuple(Hold),
}


class Fit:
    """Workers of one shape that fit: counts (H,), sums[l] (D_l,), best[l] = most in one labelled domain.

    usable: (H,) whether the workload may use the host. seen: how much of the ledger's log the counts reflect.
    """

    __slots__ = ("best", "counts", "seen", "sums", "usable")

    def __init__(self, topology: Topology, counts: IntArray, usable: BoolArray, seen: int = 0) -> None:
        """Add the counts up the levels."""
        self.counts = counts * usable
        self.usable = usable
        self.seen = seen
        self.add_up(topology)

    def add_up(self, topology: Topology) -> None:
        """Recompute sums and best after `counts` changed in place."""
        self.sums = topology.sums(self.counts)
        self.best = topology.best(self.sums)


class FitTable:
    """Fits of the shapes met in this cycle."""

    def __init__(self, snapshot: Snapshot, topology: Topology, ledger: Ledger) -> None:
        """Lay the columns that open and close hosts in canonical order."""
        self._topology = topology
        self._ledger = ledger
        self._hold = snapshot.hosts.hold[topology.order]
        self._taints = snapshot.hosts.taints[topology.order]
        self._fits: dict[Shape, Fit] = {}
        self._masks: dict[tuple[Shape, Opening], BoolArray] = {}

    def current(self, shape: Shape, level: int, need: int) -> Fit | None:
        """Return the up-to-date fit, or None where no domain of `level` holds `need` workers."""
        fit = self._fits.get(shape)
        if fit is None:
            fit = self._fits[shape] = self.probe(shape, self._ledger.now, Opening.NOTHING)
        elif fit.best[level] >= need:  # an old figure is an upper bound: too low once is too low for good
            self._refresh(shape, fit)
        return fit if fit.best[level] >= need else None

    def probe(self, shape: Shape, stock: Stock, opening: Opening) -> Fit:
        """Return the fit on another stock, or with closed hosts opened."""
        usable = self.usable(shape, opening)
        return Fit(self._topology, workers_at(shape, stock, EVERYWHERE), usable, len(self._ledger.log))

    def usable(self, shape: Shape, opening: Opening) -> BoolArray:
        """Return (H,) whether the workload may use the host, whatever is free there."""
        gates = shape._replace(gpus=0, cpu=0, memory=0, pods=0)
        mask = self._masks.get((gates, opening))
        if mask is None:
            mask = self._masks[gates, opening] = self.permitted(shape) & self._open(shape, opening)
        return mask

    def permitted(self, shape: Shape) -> BoolArray:
        """Return (H,) whether the request itself allows the host: flavor, cluster, exclusions, label."""
        topology = self._topology
        mask = np.ones(len(topology.order), dtype=bool)
        if shape.flavor != NO_FLAVOR:
            mask &= self._ledger.empty.gpus[shape.flavor] > 0
        if shape.clusters:
            mask &= np.isin(topology.cluster, shape.clusters)
        if shape.excluded:
            mask[topology.position[list(shape.excluded)]] = False
        if shape.level:
            mask &= topology.labelled[shape.level][topology.segment[shape.level]]
        return mask

    def _open(self, shape: Shape, opening: Opening) -> BoolArray:
        mask = np.isin(self._hold, _OPENED_HOLDS[opening])
        if opening < Opening.CORDONED:
            mask &= np.isin(self._taints, [0, *shape.tolerated])
        return mask

    def _refresh(self, shape: Shape, fit: Fit) -> None:
        log = self._ledger.log
        if fit.seen == len(log):
            return
        touched = np.concatenate(log[fit.seen :])
        fit.seen = len(log)
        fit.counts[touched] = workers_at(shape, self._ledger.now, touched) * fit.usable[touched]
        fit.add_up(self._topology)


def shape_of(workload: Workload, flavor: int, topology: Topology) -> Shape:
    """Return the workload's shape. Raise ValueError if no cluster has the level that it requires."""
    return Shape(
        flavor=flavor,
        gpus=workload.gpus_per_worker,
        cpu=workload.cpu_milli,
        memory=workload.memory_mib,
        pods=1,
        level=required_level(workload, topology),
        clusters=workload.clusters,
        excluded=workload.excluded_hosts,
        tolerated=workload.tolerated,
    )


def required_level(workload: Workload, topology: Topology) -> int:
    """Return the number of the widest level allowed, 0 = anything inside one cluster. Raise ValueError."""
    if workload.topology is not TopologyMode.REQUIRE or workload.level == CLUSTER:
        return 0
    return topology.levels.index(workload.level)


def workers_at(shape: Shape, stock: Stock, at: slice | IntArray) -> IntArray:
    """Return how many workers the amounts at these positions hold; never negative."""
    needs = [(shape.cpu, stock.cpu), (shape.memory, stock.memory), (shape.pods, stock.pods)]
    if shape.gpus:
        needs.append((shape.gpus, stock.gpus[shape.flavor]))
    counts: IntArray = np.full(stock.pods[at].shape, PLENTY, dtype=np.int64)
    for need, free in needs:
        if need:
            np.minimum(counts, free[at] // need if need > 1 else free[at], out=counts)
    np.maximum(counts, 0, out=counts)
    return counts
