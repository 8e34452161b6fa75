"""Which hosts a request may use at all, whatever is free there.

Hosts are kept in pools, one per flavor: all hosts that have any of it, with the topology of these hosts alone. Inside a
pool a shape has a mask, which depends on its gates only (clusters, exclusions, tolerations, required label), not on
what it needs.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from jobs.scheduler.ledger import Ledger
from jobs.scheduler.topology import Topology, restrict
from jobs.scheduler.types import NO_FLAVOR, BoolArray, Hold, IntArray, Snapshot

MOST_KEPT = 256  # masks that are kept; more distinct gates cost time, not memory


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
    TOO_OLD = 4


_OPENED_HOLDS = {
    Opening.NOTHING: (Hold.NONE,),
    Opening.CORDONED: (Hold.NONE, Hold.CORDONED),
    Opening.NOT_READY: (Hold.NONE, Hold.CORDONED, Hold.NOT_READY),
    Opening.STALE: (Hold.NONE, Hold.CORDONED, Hold.NOT_READY, Hold.STALE),
    Opening.TOO_OLD: tuple(Hold),
}


class Pool(NamedTuple):
    """The hosts that have a flavor; a "place" is a number in this pool.

    at: (P,) position of each place; local: (H,) place of each position, -1 outside; topology: of these hosts alone.
    """

    at: IntArray
    local: IntArray
    topology: Topology


class Gates:
    """Pools by flavor, and masks by shape and opening, worked out once."""

    def __init__(self, snapshot: Snapshot, topology: Topology, ledger: Ledger) -> None:
        """Lay the columns that open and close hosts in canonical order."""
        self._topology = topology
        self._ledger = ledger
        self._hold = snapshot.hosts.hold[topology.order]
        self._taints = snapshot.hosts.taints[topology.order]
        self._pools: dict[int, Pool] = {}
        self._usable: dict[tuple[Shape, Opening], BoolArray] = {}

    def pool(self, flavor: int) -> Pool:
        """Return all hosts that have any of the flavor, free or not; NO_FLAVOR: all hosts."""
        if flavor not in self._pools:
            at = np.arange(len(self._hold))
            if flavor != NO_FLAVOR:
                at = (self._ledger.empty[flavor] > 0).nonzero()[0]
            local = np.full(len(self._hold), -1)
            local[at] = np.arange(len(at))
            self._pools[flavor] = Pool(at, local, restrict(self._topology, at))
        return self._pools[flavor]

    def usable(self, shape: Shape, opening: Opening) -> BoolArray:
        """Return (P,) whether a worker may go to each place of the pool of its flavor."""
        gates = shape._replace(gpus=0, cpu=0, memory=0, pods=0)
        mask = self._usable.get((gates, opening))
        if mask is None:
            mask = (self.permitted(shape) & self._open(shape, opening))[self.pool(shape.flavor).at]
            self._usable[gates, opening] = mask
            drop_oldest(self._usable, MOST_KEPT)
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


def drop_oldest(kept: dict[Any, Any], most: int) -> None:
    """Keep a memo small."""
    if len(kept) > most:
        kept.pop(next(iter(kept)))
