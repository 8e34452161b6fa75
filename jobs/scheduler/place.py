"""Which domain takes a gang: the lowest level that holds it, and there the tightest domain (best fit).

Tight means: of hosts, the one with the least free GPUs; of wider domains, the one that holds the fewest workers of
this shape, then the one with the least free GPUs. Ties go to the domain whose enclosing domain holds the fewest
workers, so that large holes stay whole, and at last to the order of identifiers.
"""

import numpy as np

from jobs.scheduler.feasibility import Fit
from jobs.scheduler.request import Request
from jobs.scheduler.types import IntArray


def choose_domain(fit: Fit, request: Request, workers: int, free: IntArray) -> tuple[int, int]:
    """Return (level, domain) for a gang that fits at the request's widest level.

    free: (P,) free GPUs by place. The domain is numbered as in the fit's pool.
    """
    topology = fit.pool.topology
    level = request.lowest
    holding = topology.holding(level, fit.sums(level), workers)
    while not holding.size:
        level -= 1
        holding = topology.holding(level, fit.sums(level), workers)
    if level == topology.node:
        holding = _least(holding, free[holding])
    else:
        holding = _least(holding, fit.sums(level)[holding])
        if holding.size > 1:
            holding = _least(holding, _free_inside(fit, level, holding, free))
    if holding.size > 1 and level:
        enclosing = topology.parent[level][holding]
        return level, int(holding[fit.sums(level - 1)[enclosing].argmin()])
    return level, int(holding[0])


def _free_inside(fit: Fit, level: int, domains: IntArray, free: IntArray) -> IntArray:
    """Return the free GPUs on the usable hosts of some domains."""
    usable = free * fit.usable
    inside: IntArray = np.add.reduceat(usable, fit.pool.topology.starts[level])[domains]
    return inside


def _least(candidates: IntArray, values: IntArray) -> IntArray:
    smallest: IntArray = candidates[values == values[values.argmin()]]  # argmin is several times faster than min
    return smallest
