"""Start one workload whole: all of its workers, or as many as fit down to its least number, or none."""

import numpy as np

from jobs.scheduler import fill
from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Fit, Shape, shape_of
from jobs.scheduler.place import Search, choose_domain, search_of
from jobs.scheduler.types import NO_FLAVOR, Admission, IntArray, Placement, Workload


def start(books: Books, workload: Workload) -> Admission | None:
    """Admit the workload on the first flavor that holds it, and book it; None if it must wait."""
    try:
        search = search_of(workload, books.topology)
    except ValueError:  # no cluster has the level that it requires
        return None
    for flavor in workload.flavors or (NO_FLAVOR,):
        allowed = _allowed_by_quota(books, workload, flavor)
        if allowed < workload.min_workers:
            continue
        shape = shape_of(workload, flavor, books.topology)
        fit = books.fits.current(shape, search.widest, workload.min_workers)
        if fit is not None:
            return _admit(books, workload, shape, fit, search, min(allowed, fit.best[search.widest]))
    return None


def _allowed_by_quota(books: Books, workload: Workload, flavor: int) -> int:
    quota = books.quota
    room = quota.workers(workload.queue, flavor, workload.gpus_per_worker, quota.now)
    return workload.workers if room is None else min(workload.workers, room)


def _admit(books: Books, workload: Workload, shape: Shape, fit: Fit, search: Search, workers: int) -> Admission:
    at, shares = _layout(books, shape, fit, search, workers)
    books.ledger.take(shape.flavor, at, shares, (shape.gpus, shape.cpu, shape.memory))
    if shape.gpus:
        books.quota.charge(workload.queue, shape.flavor, workers * shape.gpus)
    topology = books.topology
    placement = Placement(
        flavor=shape.flavor,
        cluster=int(topology.cluster[at[0]]),
        level=topology.levels[topology.common_level(int(at[0]), int(at[-1]))],
        hosts=tuple(np.repeat(topology.order[at], shares).tolist()),
    )
    return Admission(workload.id, workers, placement)


def _layout(books: Books, shape: Shape, fit: Fit, search: Search, workers: int) -> tuple[IntArray, IntArray]:
    stock = books.ledger.now
    free = stock.gpus[shape.flavor] if shape.gpus else stock.cpu
    place = choose_domain(books.topology, fit, search, workers, free)
    if search.spread:
        return fill.spread(books.topology, fit, place, workers)
    layout = fill.pack_flat if search.flat else fill.pack
    return layout(books.topology, fit, place, workers, np.maximum(free, 0))
