"""How many workers of one shape fit on each host and in each domain.

A host holds min over its resources of free // needed workers, if the workload may use it at all; a domain holds the
sum over its hosts, since a worker is never split. Figures are kept per shape and brought up to date from the
ledger's log: a cycle with many gangs of few shapes computes few hosts anew.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from jobs.scheduler.ledger import Ledger, Needs
from jobs.scheduler.topology import Topology, restrict
from jobs.scheduler.types import NO_FLAVOR, BoolArray, Hold, IntArray, Snapshot

PLENTY = 1_000_000  # workers on a host when nothing limits them; small enough that sums stay exact
MOST_KEPT = 256  # shapes whose figures are kept; more distinct shapes cost time, not memory


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


class Pool(NamedTuple):
    """The hosts that one kind of request may use, whatever is free there.

    at: (P,) their positions; local: (H,) place of a position in `at`, -1 outside; topology: of these hosts alone.
    """

    at: IntArray
    local: IntArray
    topology: Topology


class Fit:
    """Workers of one shape that fit: counts (P,) per host of the pool, and per domain of any level when asked.

    Hosts and domains are numbered as in the pool's topology. seen: how much of the ledger's log the counts reflect.
    """

    __slots__ = ("_best", "_sums", "counts", "needs", "pool", "seen")

    def __init__(self, pool: Pool, needs: Needs, stock: IntArray) -> None:
        """Count on a whole stock."""
        self._best: dict[int, int] = {}
        self._sums: dict[int, IntArray] = {}
        self.pool = pool
        self.needs = needs
        self.counts = _workers(needs, stock, pool.at)
        self.seen = 0

    def update(self, stock: IntArray, changed: IntArray) -> None:
        """Count again at some positions."""
        local = self.pool.local[changed]
        local = local[local >= 0]
        if local.size:
            self.counts[local] = _workers(self.needs, stock, self.pool.at[local])
            self._best.clear()
            self._sums.clear()

    def sums(self, level: int) -> IntArray:
        """Return (D_l,) workers per domain of a level."""
        sums = self._sums.get(level)
        if sums is None:
            sums = self._sums[level] = self.pool.topology.sums(level, self.counts)
        return sums

    def best(self, level: int) -> int:
        """Return the most workers that one labelled domain of the level holds."""
        best = self._best.get(level)
        if best is None:
            best = self._best[level] = self.pool.topology.most(level, self.sums(level))
        return best


class FitTable:
    """Fits of the shapes met in this cycle."""

    def __init__(self, snapshot: Snapshot, topology: Topology, ledger: Ledger) -> None:
        """Lay the columns that open and close hosts in canonical order."""
        self._topology = topology
        self._ledger = ledger
        self._hold = snapshot.hosts.hold[topology.order]
        self._taints = snapshot.hosts.taints[topology.order]
        self._fits: dict[Shape, Fit] = {}
        self._pools: dict[tuple[Shape, Opening], Pool] = {}

    def current(self, shape: Shape, level: int, need: int) -> Fit | None:
        """Return the up-to-date fit, or None where no domain of `level` holds `need` workers."""
        fit = self._fits.get(shape)
        if fit is None:
            fit = self._fits[shape] = self.probe(shape, self._ledger.now, Opening.NOTHING)
            fit.seen = self._ledger.changes(shape.flavor)
            _drop_oldest(self._fits)
        elif fit.best(level) >= need:  # an old figure is an upper bound: too low once is too low for good
            changes = self._ledger.changes(shape.flavor)
            if fit.seen < changes:
                fit.update(self._ledger.now, self._ledger.changed_since(shape.flavor, fit.seen))
                fit.seen = changes
        return fit if fit.best(level) >= need else None

    def probe(self, shape: Shape, stock: IntArray, opening: Opening) -> Fit:
        """Return the fit on any stock, with closed hosts opened."""
        needs = self._ledger.needs_of(shape.flavor, shape.gpus, (shape.cpu, shape.memory, shape.pods))
        return Fit(self.pool(shape, opening), needs, stock)

    def pool(self, shape: Shape, opening: Opening) -> Pool:
        """Return the hosts that the workload may use, whatever is free there."""
        gates = shape._replace(gpus=0, cpu=0, memory=0, pods=0)
        pool = self._pools.get((gates, opening))
        if pool is None:
            at = (self.permitted(shape) & self._open(shape, opening)).nonzero()[0]
            local = np.full(len(self._hold), -1)
            local[at] = np.arange(len(at))
            pool = self._pools[gates, opening] = Pool(at, local, restrict(self._topology, at))
            _drop_oldest(self._pools)
        return pool

    def permitted(self, shape: Shape) -> BoolArray:
        """Return (H,) whether the request itself allows the host: flavor, cluster, exclusions, label."""
        topology = self._topology
        mask = np.ones(len(topology.order), dtype=bool)
        if shape.flavor != NO_FLAVOR:
            mask &= self._ledger.empty[shape.flavor] > 0
        if shape.clusters:
            mask &= np.isin(topology.cluster, shape.clusters)
        if shape.excluded:
            mask[self._ledger.position[list(shape.excluded)]] = False
        if shape.level:
            mask &= topology.labelled[shape.level][topology.segment[shape.level]]
        return mask

    def _open(self, shape: Shape, opening: Opening) -> BoolArray:
        opened = np.zeros(len(Hold), dtype=bool)
        opened[list(_OPENED_HOLDS[opening])] = True
        mask: BoolArray = opened[self._hold]
        if opening < Opening.CORDONED:
            tolerated = np.zeros(1 + max(int(self._taints.max(initial=0)), 0, *shape.tolerated), dtype=bool)
            tolerated[[0, *shape.tolerated]] = True
            mask &= tolerated[self._taints]
        return mask


def _workers(needs: Needs, stock: IntArray, at: IntArray) -> IntArray:
    """Return (P,) how many workers the amounts at these positions hold; never negative."""
    workers = np.full(len(at), PLENTY)
    for row, amount in needs.rows:
        free = stock[row][at]
        np.minimum(workers, free if amount == 1 else free // amount, out=workers)
    np.maximum(workers, 0, out=workers)
    return workers


def _drop_oldest(kept: dict[Any, Any]) -> None:
    if len(kept) > MOST_KEPT:
        kept.pop(next(iter(kept)))
