"""What every host has: at the start of the cycle, now, and when empty; admissions take from now at once.

A stock is an (R, H) array of amounts by canonical position: one row per flavor in whole GPUs, then milli CPU, MiB
of memory and pod slots.
"""

import numpy as np

from jobs.scheduler.topology import Topology
from jobs.scheduler.types import NO_FLAVOR, IntArray, Snapshot

CPU, MEMORY, PODS = -3, -2, -1  # rows of a stock


class Ledger:
    """Three stocks. Within a cycle the amounts of `now` only fall."""

    def __init__(self, snapshot: Snapshot, topology: Topology) -> None:
        """Lay the snapshot's columns in canonical order."""
        hosts, offers = snapshot.hosts, snapshot.offers
        self.position = np.argsort(topology.order)  # (H,) host -> position
        free = (hosts.cpu_milli, hosts.memory_mib, hosts.pods)
        total = (hosts.cpu_milli_total, hosts.memory_mib_total, hosts.pods_total)
        self.now = _stock(snapshot, self.position, offers.free, free)
        self.start = self.now.copy()
        self.empty = _stock(snapshot, self.position, offers.total, total)
        self._any_shared = bool(np.any(np.count_nonzero(self.empty[:CPU] > 0, axis=0) > 1))

    def take(self, needs: IntArray, layout: list[tuple[int, int]]) -> None:
        """Book workers at distinct positions: (position, workers) each; needs: (R,) per worker."""
        for position, workers in layout:  # one view a host is several times faster than an index array
            self.now[:, position] -= needs * workers

    def share_hosts(self, flavor: int, other: int) -> bool:
        """Return whether a host may have both flavors."""
        return flavor == other or NO_FLAVOR in (flavor, other) or self._any_shared


def _stock(
    snapshot: Snapshot, position: IntArray, gpus: IntArray, others: tuple[IntArray, IntArray, IntArray]
) -> IntArray:
    offers, flavors = snapshot.offers, len(snapshot.flavors)
    stock = np.zeros((flavors + len(others), len(position)), dtype=np.int64)
    np.add.at(stock, (offers.flavor, position[offers.host]), gpus)
    for row, column in enumerate(others, start=flavors):
        stock[row, position] = column
    return stock
