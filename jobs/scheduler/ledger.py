"""What every host has: at the start of the cycle, now, and when empty; admissions take from now at once."""

from dataclasses import dataclass

import numpy as np

from jobs.scheduler.topology import Topology
from jobs.scheduler.types import IntArray, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """Amounts by position: gpus (F, H) per flavor; cpu in milli, memory in MiB, pods as slots, (H,) each."""

    gpus: IntArray
    cpu: IntArray
    memory: IntArray
    pods: IntArray

    def copy(self) -> "Stock":
        """Return an independent stock."""
        return Stock(self.gpus.copy(), self.cpu.copy(), self.memory.copy(), self.pods.copy())


class Ledger:
    """Three stocks and the log of positions whose `now` has changed.

    Within a cycle amounts only fall. Whoever keeps figures derived from `now` may therefore use old ones as
    upper bounds, and needs only the log's new entries to bring them up to date.
    """

    def __init__(self, snapshot: Snapshot, topology: Topology) -> None:
        """Lay the snapshot's columns in canonical order."""
        hosts, offers, order = snapshot.hosts, snapshot.offers, topology.order
        self.now = Stock(
            _by_flavor(snapshot, topology, offers.free),
            hosts.cpu_milli[order],
            hosts.memory_mib[order],
            hosts.pods[order],
        )
        self.empty = Stock(
            _by_flavor(snapshot, topology, offers.total),
            hosts.cpu_milli_total[order],
            hosts.memory_mib_total[order],
            hosts.pods_total[order],
        )
        self.start = self.now.copy()
        self.log: list[IntArray] = []

    def take(self, flavor: int, at: IntArray, workers: IntArray, per_worker: tuple[int, int, int]) -> None:
        """Book `workers` (K,) at distinct positions `at` (K,); per_worker: GPUs, milli CPU, MiB."""
        gpus, cpu, memory = per_worker
        if gpus:
            self.now.gpus[flavor, at] -= gpus * workers
        self.now.cpu[at] -= cpu * workers
        self.now.memory[at] -= memory * workers
        self.now.pods[at] -= workers
        self.log.append(at)


def _by_flavor(snapshot: Snapshot, topology: Topology, amounts: IntArray) -> IntArray:
    offers = snapshot.offers
    columns = np.zeros((len(snapshot.flavors), len(topology.order)), dtype=np.int64)
    np.add.at(columns, (offers.flavor, topology.position[offers.host]), amounts)
    return columns
