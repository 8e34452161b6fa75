"""Start one workload whole: all of its workers, or as many as fit down to its least number, or none."""

from typing import NamedTuple

from jobs.scheduler import fill
from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Fit, Layout
from jobs.scheduler.place import choose_domain
from jobs.scheduler.request import Request
from jobs.scheduler.shapes import Shape
from jobs.scheduler.types import Admission, Placement, Workload


class Found(NamedTuple):
    """A request, the shape of the flavor that it gets, and where that fits."""

    request: Request
    shape: Shape
    fit: Fit


def start(books: Books, workload: Workload, request: Request | None) -> Admission | None:
    """Admit the workload on the first flavor that holds it, and book it; None if it must wait."""
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
    books.fits.take(shape, found.fit, layout)
    if shape.gpus:
        books.quota.charge(queue, shape.flavor, workers * shape.gpus)
    places = [place for place, _ in layout]
    first, last = places[0], places[-1]
    return Placement(
        flavor=shape.flavor,
        cluster=int(topology.cluster[first]),
        level=topology.levels[topology.common_level(first, last)],
        hosts=tuple([host for place, share in layout for host in [topology.order.item(place)] * share]),
    )


def _layout(books: Books, found: Found, workers: int) -> Layout:
    request, shape, fit = found
    free = books.fits.free(shape.flavor)
    domain = choose_domain(fit, request, workers, free)
    if request.spread:
        return fill.spread(fit, domain, workers)
    layout = fill.pack_flat if request.flat else fill.pack
    return layout(fit, domain, workers, free)
