"""How a gang is laid out inside its domain: (positions, workers per position), positions ascending.

Positions follow the topology, so ranks handed out in this order are neighbours in place as in number.
"""

from collections.abc import Iterator

import numpy as np

from jobs.scheduler.feasibility import Fit
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import IntArray

Layout = tuple[IntArray, IntArray]


def pack_flat(topology: Topology, fit: Fit, place: tuple[int, int], workers: int, free: IntArray) -> Layout:
    """Take the hosts of a domain with the least free GPUs first, levels ignored."""
    return _sorted([_pack_hosts(topology.span(*place), fit.counts, workers, free)])


def pack(topology: Topology, fit: Fit, place: tuple[int, int], workers: int, free: IntArray) -> Layout:
    """Use as few inner domains as possible, level by level; inside the narrowest, part-used hosts first."""
    level, domain = place
    if level == topology.node:
        return np.array([domain]), np.array([workers])
    shares = [(*place, workers)]
    while level < topology.node - 1:
        shares = [
            (level + 1, child, share)
            for _, parent, count in shares
            for child, share in _fewest(fit.sums[level + 1], topology.children(level, parent), count)
        ]
        level += 1
    return _sorted([_pack_hosts(topology.span(level, inner), fit.counts, count, free) for _, inner, count in shares])


def spread(topology: Topology, fit: Fit, place: tuple[int, int], workers: int) -> Layout:
    """Deal the workers out evenly, level by level down to hosts; skew <= 1 where room allows."""
    level, domain = place
    domains, shares = np.array([domain]), np.array([workers])
    while level < topology.node:
        dealt = [
            _deal(fit.sums[level + 1], topology.children(level, int(parent)), int(count))
            for parent, count in zip(domains, shares, strict=True)
        ]
        domains, shares = (np.concatenate(column) for column in zip(*dealt, strict=True))
        level += 1
    return domains, shares


def _fewest(room: IntArray, children: slice, workers: int) -> Iterator[tuple[int, int]]:
    """Yield (child, share): the roomiest children in full, then the tightest that holds the rest."""
    mine = room[children]
    unused = np.argsort(-mine, kind="stable")
    left = workers
    while mine[unused[0]] < left:
        yield children.start + int(unused[0]), int(mine[unused[0]])
        left -= int(mine[unused[0]])
        unused = unused[1:]
    holding = unused[mine[unused] >= left]
    tightest = holding[mine[holding] == mine[holding[-1]]][0]
    yield children.start + int(tightest), left


def _pack_hosts(span: slice, counts: IntArray, workers: int, free: IntArray) -> Layout:
    """Fill the hosts of a span, least free GPUs first; each used host but the last is filled up."""
    holding = np.flatnonzero(counts[span]) + span.start
    key = free[holding] * len(counts) + holding  # distinct, so the choice below is the same on every machine
    if len(key) > workers:  # each host takes at least one worker
        key = np.partition(key, workers - 1)[:workers]
    hosts = np.sort(key) % len(counts)
    filled = np.cumsum(counts[hosts])
    last = int(np.searchsorted(filled, workers))
    shares = counts[hosts[: last + 1]]
    shares[-1] -= filled[last] - workers
    return hosts[: last + 1], shares


def _deal(room: IntArray, children: slice, workers: int) -> Layout:
    """Share workers over children: equal shares, capped by room; the roomiest children take the odd ones."""
    mine = room[children]
    level = _water_level(mine, workers)
    shares = np.minimum(mine, level)
    odd = workers - int(shares.sum())
    open_children = np.flatnonzero(mine > level)
    roomiest = open_children[np.argsort(-mine[open_children], kind="stable")]
    shares[roomiest[:odd]] += 1
    used = np.flatnonzero(shares)
    return used + children.start, shares[used]


def _water_level(room: IntArray, workers: int) -> int:
    """Return the largest equal share, capped by each child's room, whose sum does not exceed `workers`."""
    low, high = 0, workers
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(room, middle).sum()) <= workers:
            low = middle
        else:
            high = middle - 1
    return low


def _sorted(parts: list[Layout]) -> Layout:
    positions = np.concatenate([part[0] for part in parts])
    shares = np.concatenate([part[1] for part in parts])
    order = np.argsort(positions)
    return positions[order], shares[order]
