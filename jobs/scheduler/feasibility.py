"""How many workers of one shape fit on each host and in each domain.

A host holds min over its resources of free // needed workers, if the workload may use it at all; a domain holds the
sum over its hosts, since a worker is never split. Figures are kept per shape and brought up to date from the
ledger's log: a cycle with many gangs of few shapes computes few hosts anew.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from jobs.scheduler.ledger import Ledger, Needs
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import NO_FLAVOR, BoolArray, Hold, IntArray, Snapshot

PLENTY = 1_000_000  # workers on a host when nothing limits them; small enough that sums stay exact
MOST_FITS = 512  # shapes whose figures are kept; more distinct shapes cost time, not memory


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
    """Workers of one shape that fit: counts (H,) per host, and from them per domain of any level when asked.

    usable: (H,) whether the workload may use the host. seen: how much of the ledger's log the counts reflect.
    """

    __slots__ = ("_best", "_sums", "_topology", "counts", "needs", "seen", "usable")

    def __init__(self, topology: Topology, needs: Needs, stock: IntArray, usable: BoolArray) -> None:
        """Count on a whole stock."""
        self._topology = topology
        self._best: dict[int, int] = {}
        self._sums: dict[int, IntArray] = {}
        self.needs = needs
        self.usable = usable
        self.counts = _workers(needs, stock[needs.rows]) * usable
        self.seen = 0

    def update(self, stock: IntArray, at: IntArray) -> None:
        """Count again at some positions."""
        self.counts[at] = _workers(self.needs, stock.take(at, axis=1)[self.needs.rows]) * self.usable[at]
        self._best.clear()
        self._sums.clear()

    def sums(self, level: int) -> IntArray:
        """Return (D_l,) workers per domain of a level."""
        sums = self._sums.get(level)
        if sums is None:
            sums = self._sums[level] = self._topology.sums(level, self.counts)
        return sums

    def best(self, level: int) -> int:
        """Return the most workers that one labelled domain of the level holds."""
        best = self._best.get(level)
        if best is None:
            best = self._best[level] = self._topology.most(level, self.sums(level))
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
        self._masks: dict[tuple[Shape, Opening], BoolArray] = {}
        self._opened: dict[tuple[frozenset[int], Opening], BoolArray] = {}

    def current(self, shape: Shape, level: int, need: int) -> Fit | None:
        """Return the up-to-date fit, or None where no domain of `level` holds `need` workers."""
        fit = self._fits.get(shape)
        if fit is None:
            fit = self._fits[shape] = self.probe(shape, self._ledger.now, Opening.NOTHING)
            fit.seen = self._ledger.changes(shape.flavor)
            if len(self._fits) > MOST_FITS:
                self._fits.pop(next(iter(self._fits)))
        elif fit.best(level) >= need:  # an old figure is an upper bound: too low once is too low for good
            changes = self._ledger.changes(shape.flavor)
            if fit.seen < changes:
                fit.update(self._ledger.now, self._ledger.changed_since(shape.flavor, fit.seen))
                fit.seen = changes
        return fit if fit.best(level) >= need else None

    def probe(self, shape: Shape, stock: IntArray, opening: Opening) -> Fit:
        """Return the fit on any stock, with closed hosts opened."""
        needs = self._ledger.needs_of(shape.flavor, shape.gpus, (shape.cpu, shape.memory, shape.pods))
        return Fit(self._topology, needs, stock, self.usable(shape, opening))

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
            mask &= self._ledger.empty[shape.flavor] > 0
        if shape.clusters:
            mask &= np.isin(topology.cluster, shape.clusters)
        if shape.excluded:
            mask[topology.position[list(shape.excluded)]] = False
        if shape.level:
            mask &= topology.labelled[shape.level][topology.segment[shape.level]]
        return mask

    def _open(self, shape: Shape, opening: Opening) -> BoolArray:
        key = (shape.tolerated, opening)
        mask = self._opened.get(key)
        if mask is None:
            mask = np.isin(self._hold, _OPENED_HOLDS[opening])
            if opening < Opening.CORDONED:
                mask &= np.isin(self._taints, [0, *shape.tolerated])
            self._opened[key] = mask
        return mask


def _workers(needs: Needs, amounts: IntArray) -> IntArray:
    """Return (H,) how many workers the amounts (K, H) hold; never negative."""
    if not needs.rows.size:
        return np.full(amounts.shape[1], PLENTY, dtype=np.int64)
    workers: IntArray = np.minimum.reduce(amounts // needs.amounts, axis=0)
    np.maximum(workers, 0, out=workers)
    return workers
