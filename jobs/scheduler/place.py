"""Which domain takes a gang: the lowest level that holds it, and there the tightest domain (best fit).

Tight means: of hosts, the one with the least free GPUs; of wider domains, the one that holds the fewest workers of
this shape, then the one with the least free GPUs. Ties go to the domain whose enclosing domain holds the fewest
workers, so that large holes stay whole, and at last to the order of identifiers.
"""

import numpy as np

from jobs.scheduler.feasibility import Fit
from jobs.scheduler.request import Request
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import IntArray


def choose_domain(topology: Topology, fit: Fit, request: Request, workers: int, free: IntArray) -> tuple[int, int]:
    """Return (level, domain) for a gang that fits at the request's widest level. free: (H,) GPUs."""
    level = request.lowest
    holding = topology.holding(level, fit.sums(level), workers)
    while not len(holding):
        level -= 1
        holding = topology.holding(level, fit.sums(level), workers)
    if level == topology.node:
        holding = _least(free, holding)
    else:
        holding = _least(fit.sums(level), holding)
        if len(holding) > 1:
            holding = _least(topology.sums(level, free * fit.usable), holding)
    if len(holding) > 1 and level:
        enclosing = topology.parent[level][holding]
        return level, int(holding[np.argmin(fit.sums(level - 1)[enclosing])])
    return level, int(holding[0])


def _least(values: IntArray, candidates: IntArray) -> IntArray:
    mine = values[candidates]
    smallest: IntArray = candidates[mine == np.minimum.reduce(mine)]
    return smallest
