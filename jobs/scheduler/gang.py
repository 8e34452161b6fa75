"""Start one workload whole: all of its workers, or as many as fit down to its least number, or none."""

from typing import NamedTuple

from jobs.scheduler import fill
from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Fit
from jobs.scheduler.ledger import PODS
from jobs.scheduler.place import choose_domain
from jobs.scheduler.request import Request
from jobs.scheduler.shapes import Shape
from jobs.scheduler.types import NO_FLAVOR, Admission, Placement, Workload


class Found(NamedTuple):
    """A request, the shape of the flavor that it gets, and where that fits."""

    request: Request
    shape: Shape
    fit: Fit


def start(books: Books, workload: Workload) -> Admission | None:
    """Admit the workload on the first flavor that holds it, and book it; None if it must wait."""
    request = books.requests.of(workload)
    if request is None:
        return None
    for shape in request.shapes:
        allowed = workload.workers
        if shape.gpus:
            allowed = min(allowed, books.quota.room(workload.queue, shape.flavor, books.quota.now) // shape.gpus)
        if allowed < workload.min_workers:
            continue
        fit = books.fits.current(shape, request.widest, workload.min_workers)
        if fit is not None:
            workers = min(allowed, fit.best(request.widest))
            return Admission(workload.id, workers, _book(books, workload.queue, Found(request, shape, fit), workers))
    return None


def _book(books: Books, queue: int, found: Found, workers: int) -> Placement:
    shape, topology = found.shape, found.fit.pool.topology
    layout = _layout(books, found, workers)
    books.fits.take(shape.flavor, found.fit, layout)
    if shape.gpus:
        books.quota.charge(queue, shape.flavor, workers * shape.gpus)
    places = [place for place, _ in layout]
    first, last = places[0], places[-1]
    hosts = zip(topology.order[places].tolist(), layout, strict=True)
    return Placement(
        flavor=shape.flavor,
        cluster=int(topology.cluster[first]),
        level=topology.levels[topology.common_level(first, last)],
        hosts=tuple([host for host, (_, share) in hosts for _ in range(share)]),
    )


def _layout(books: Books, found: Found, workers: int) -> fill.Layout:
    request, shape, fit = found
    free = books.ledger.now[PODS if shape.flavor == NO_FLAVOR else shape.flavor]
    domain = choose_domain(fit, request, workers, free)
    if request.spread:
        return fill.spread(fit, domain, workers)
    layout = fill.pack_flat if request.flat else fill.pack
    return layout(fit, domain, workers, free)
