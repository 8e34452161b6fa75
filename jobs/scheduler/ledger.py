"""What every host has: at the start of the cycle, now, and when empty; admissions take from now at once.

A stock is an (R, H) array of amounts by canonical position: one row per flavor in whole GPUs, then milli CPU, MiB
of memory and pod slots.
"""

from typing import NamedTuple

import numpy as np

from jobs.scheduler.topology import Topology
from jobs.scheduler.types import NO_FLAVOR, IntArray, Snapshot

CPU, MEMORY, PODS = -3, -2, -1  # rows of a stock


class Needs(NamedTuple):
    """What one worker takes: per_row (R, 1) of a stock; rows: (row, amount) of those that are not 0."""

    per_row: IntArray
    rows: list[tuple[int, int]]


class Ledger:
    """Three stocks, and per flavor a log of positions whose `now` has changed.

    Within a cycle amounts only fall. Whoever keeps figures derived from `now` may therefore use old ones as upper
    bounds, and needs only the log's new entries to bring them up to date.
    """

    def __init__(self, snapshot: Snapshot, topology: Topology) -> None:
        """Lay the snapshot's columns in canonical order."""
        hosts, offers = snapshot.hosts, snapshot.offers
        self.position = np.argsort(topology.order)  # (H,) host -> position
        free = (hosts.cpu_milli, hosts.memory_mib, hosts.pods)
        total = (hosts.cpu_milli_total, hosts.memory_mib_total, hosts.pods_total)
        self.now = _stock(snapshot, self.position, offers.free, free)
        self.start = self.now.copy()
        self.empty = _stock(snapshot, self.position, offers.total, total)
        self._hosts_are_shared = bool(np.any(np.count_nonzero(self.empty[:CPU] > 0, axis=0) > 1))
        self._logs: dict[int, list[int]] = {flavor: [] for flavor in (NO_FLAVOR, *range(len(snapshot.flavors)))}

    def take(self, flavor: int, needs: Needs, layout: list[tuple[int, int]]) -> None:
        """Book workers at distinct positions: (position, workers) each."""
        at = [position for position, _ in layout]
        if len(at) == 1:  # a view is several times faster than an index array
            self.now[:, at[0]] -= needs.per_row[:, 0] * layout[0][1]
        else:
            self.now[:, at] -= needs.per_row * np.array([workers for _, workers in layout])
        every = flavor == NO_FLAVOR or self._hosts_are_shared
        for other, log in self._logs.items():
            if every or other in (flavor, NO_FLAVOR):
                log.extend(at)

    def changes(self, flavor: int) -> int:
        """Return the length of a flavor's log."""
        return len(self._logs[flavor])

    def changed_since(self, flavor: int, seen: int) -> IntArray:
        """Return the log's positions after the first `seen`, perhaps repeated."""
        return np.array(self._logs[flavor][seen:])

    def needs_of(self, flavor: int, gpus: int, others: tuple[int, int, int]) -> Needs:
        """Return what a worker takes: GPUs of a flavor; milli CPU, MiB and pod slots."""
        per_row = np.zeros((len(self.now), 1), dtype=np.int64)
        per_row[CPU:, 0] = others
        if gpus:
            per_row[flavor] = gpus
        return Needs(per_row, [(row, amount) for row, amount in enumerate(per_row[:, 0].tolist()) if amount])


def _stock(
    snapshot: Snapshot, position: IntArray, gpus: IntArray, others: tuple[IntArray, IntArray, IntArray]
) -> IntArray:
    offers, flavors = snapshot.offers, len(snapshot.flavors)
    stock = np.zeros((flavors + len(others), len(position)), dtype=np.int64)
    np.add.at(stock, (offers.flavor, position[offers.host]), gpus)
    for row, column in enumerate(others, start=flavors):
        stock[row, position] = column
    return stock
