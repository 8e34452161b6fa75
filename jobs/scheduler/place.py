"""Which domain takes a gang: the lowest level that holds it, and there the tightest domain (best fit)."""

from typing import NamedTuple

import numpy as np

from jobs.scheduler.feasibility import Fit, required_level
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import BoolArray, IntArray, SpreadPolicy, TopologyMode, Workload


class Search(NamedTuple):
    """Levels to try: from `lowest` (narrow) to `widest`, as level numbers, lowest >= widest."""

    lowest: int
    widest: int
    spread: bool
    flat: bool  # hosts are chosen without regard to levels


def search_of(workload: Workload, topology: Topology) -> Search:
    """Translate topology mode and spread policy. Raise ValueError if the required level is unknown.

    A gang that packs starts at one host. One that spreads starts at the level it names, since a narrower
    place would be no spread; without a level it spreads over the whole cluster.
    """
    spread = spreads(workload)
    widest = required_level(workload, topology)
    if workload.topology is TopologyMode.NONE:
        return Search(0, 0, spread, flat=not spread)
    if not spread:
        return Search(topology.node, widest, spread=False, flat=False)
    named = topology.levels.index(workload.level) if workload.level in topology.levels else 0
    return Search(named, widest, spread=True, flat=False)


def spreads(workload: Workload) -> bool:
    """Return whether the workers keep apart."""
    auto = workload.spread is SpreadPolicy.AUTO and workload.is_service
    return auto or workload.spread is SpreadPolicy.SPREAD


def choose_domain(topology: Topology, fit: Fit, search: Search, workers: int, free: IntArray) -> tuple[int, int]:
    """Return (level, domain) for a gang that fits at the widest level.

    free: (H,) GPUs that break ties between domains that hold equally many workers. Further ties: the
    enclosing domains' room, narrow to wide, so that large holes stay whole; at last the order of identifiers.
    """
    level = search.lowest
    while fit.best[level] < workers:
        level -= 1
    room = fit.sums[level]
    chosen = _least(room, np.flatnonzero((room >= workers) & topology.labelled[level]))
    if len(chosen) > 1:
        chosen = _least(_free_gpus(topology, level, free, fit.usable), chosen)
    enclosing = chosen
    for wider in range(level - 1, -1, -1):
        if len(chosen) == 1:
            break
        enclosing = topology.parent[wider + 1][enclosing]
        tightest = fit.sums[wider][enclosing]
        keep = tightest == tightest.min()
        chosen, enclosing = chosen[keep], enclosing[keep]
    return level, int(chosen[0])


def _least(values: IntArray, candidates: IntArray) -> IntArray:
    mine = values[candidates]
    smallest: IntArray = candidates[mine == mine.min()]
    return smallest


def _free_gpus(topology: Topology, level: int, free: IntArray, usable: BoolArray) -> IntArray:
    if level == topology.node:
        return free
    return topology.sums(free * usable)[level]
