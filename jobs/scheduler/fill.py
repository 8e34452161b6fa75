"""How a gang is laid out inside its domain: (place in the fit's pool, workers there), ascending.

Places follow the topology, so ranks handed out in this order are neighbours in place as in number. Inner domains
are few, so they are handled as plain lists; only hosts may be many.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from jobs.scheduler.feasibility import Fit, Layout
from jobs.scheduler.types import IntArray

A_RACK = 48  # hosts


def pack_flat(fit: Fit, place: tuple[int, int], workers: int, free: IntArray) -> Layout:
    """Take the hosts of a domain with the least free GPUs first, levels ignored."""
    return sorted(_pack_hosts(fit, fit.pool.topology.span(*place), workers, free))


def pack(fit: Fit, place: tuple[int, int], workers: int, free: IntArray) -> Layout:
    """Use as few inner domains as possible, level by level; inside the narrowest, part-used hosts first."""
    topology = fit.pool.topology
    level, domain = place
    shares = [(domain, workers)]
    while level < topology.node - 1:
        room = fit.sums(level + 1)
        shares = [share for parent, count in shares for share in _fewest(room, topology.children(level, parent), count)]
        level += 1
    if level == topology.node:
        return shares
    spans = [(topology.span(level, inner), count) for inner, count in shares]
    return sorted(share for span, count in spans for share in _pack_hosts(fit, span, count, free))


def spread(fit: Fit, place: tuple[int, int], workers: int) -> Layout:
    """Deal the workers out evenly, level by level down to hosts; skew <= 1 where room allows."""
    topology = fit.pool.topology
    level, domain = place
    shares = [(domain, workers)]
    while level < topology.node:
        room = fit.sums(level + 1)
        shares = [share for parent, count in shares for share in _deal(room, topology.children(level, parent), count)]
        level += 1
    return shares


def _fewest(room: IntArray, children: slice, workers: int) -> Iterator[tuple[int, int]]:
    """Yield (child, share): the roomiest children in full, then the tightest that holds the rest."""
    roomiest = sorted((-left, child) for child, left in enumerate(room[children].tolist(), children.start) if left)
    missing = workers
    for index, (left, child) in enumerate(roomiest):
        if -left >= missing:
            yield min((-left, child) for left, child in roomiest[index:] if -left >= missing)[1], missing
            return
        yield child, -left
        missing += left


def _pack_hosts(fit: Fit, span: slice, workers: int, free: IntArray) -> Iterator[tuple[int, int]]:
    """Yield (host, share): hosts with the least free GPUs first, each but the last filled up."""
    missing = workers
    for host, room in _tightest_first(fit, span, workers, free):
        yield host, min(missing, room)
        missing -= room
        if missing <= 0:
            return


def _tightest_first(fit: Fit, span: slice, workers: int, free: IntArray) -> Iterable[tuple[int, int]]:
    """Return (host, room) of the hosts that hold any workers, as many as may be needed; ties go by number."""
    counts = fit.counts[span]
    amounts = free[span]
    if len(counts) <= A_RACK:  # a handful is sorted faster by hand
        hosts = zip(amounts.tolist(), range(span.start, span.stop), counts.tolist(), strict=True)
        return [(host, room) for _, host, room in sorted(hosts) if room]
    holding = counts.nonzero()[0]
    key = amounts[holding] * len(counts) + holding  # distinct, so the choice below is the same on every machine
    if len(key) > workers:  # each host takes at least one worker
        key = np.partition(key, workers - 1)[:workers]
    key.sort()
    tightest = key % len(counts)
    return zip((tightest + span.start).tolist(), counts[tightest].tolist(), strict=True)


def _deal(room: IntArray, children: slice, workers: int) -> Layout:
    """Share workers over children: equal shares, capped by room; the roomiest children take the odd ones."""
    mine = room[children]
    if workers == 1:
        return [(children.start + int(mine.argmax()), 1)]
    share = _equal_share(mine, workers)
    shares = np.minimum(mine, share)
    odd = workers - int(shares.sum())
    roomiest = (-mine).argsort(kind="stable")[:odd]  # these hold more than the equal share
    shares[roomiest] += 1
    used = shares.nonzero()[0]
    return list(zip((used + children.start).tolist(), shares[used].tolist(), strict=True))


def _equal_share(room: IntArray, workers: int) -> int:
    """Return the largest equal share, capped by each child's room, whose sum does not exceed `workers`."""
    tight = np.sort(room)
    below = tight.cumsum() - tight  # room of the children tighter than each one
    others = np.arange(len(tight), 0, -1)  # children at least as roomy as each one
    if_this_is_the_share = below + tight * others
    index = int(if_this_is_the_share.searchsorted(workers, side="right"))
    if index == len(tight):
        return int(tight[-1])
    return (workers - int(below[index])) // int(others[index])
