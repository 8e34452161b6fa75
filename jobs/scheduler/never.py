"""What can never start: not even on empty, open hosts with the queue's whole nominal amount.

Taints count as open too, since an administrator may lift them; the request's own constraints (clusters,
excluded hosts, required level, flavors) stay.
"""

import numpy as np

from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Opening, Shape, shape_of
from jobs.scheduler.place import search_of
from jobs.scheduler.types import NO_FLAVOR, BoolArray, IntArray, NeverLimit, Reason, ReasonCode, Workload


def never_reason(books: Books, workload: Workload, flavor: int) -> Reason | None:
    """Return which limit this flavor breaks for good, None if it could start some day."""
    try:
        widest = search_of(workload, books.topology).widest
    except ValueError:
        return _never(books, workload, flavor, NeverLimit.LEVEL, 0, workload.level)
    asked = workload.min_workers * workload.gpus_per_worker
    over = books.quota.too_small(workload.queue, flavor, asked) if asked else None
    if over is not None:
        most = books.quota.nominal[over][flavor]
        return _never(books, workload, flavor, NeverLimit.QUOTA, most, books.quota.ids[over])
    shape = shape_of(workload, flavor, books.topology)
    best = books.fits.probe(shape, books.ledger.empty, Opening.STALE).best
    if best[widest] >= workload.min_workers:
        return None
    limit, most = _short_resource(books, shape) or (NeverLimit.WORKERS, best[widest])
    return _never(books, workload, flavor, limit, most, books.topology.levels[widest])


def offered_flavors(books: Books, workload: Workload) -> tuple[int, ...]:
    """Return the workload's flavors that some host in its allowed clusters has, in order of preference."""
    wanted = workload.flavors or ((NO_FLAVOR,) if not workload.gpus_per_worker else ())
    return tuple(flavor for flavor in wanted if _allowed_hosts(books, workload, flavor).any())


def accelerator_reason(books: Books, workload: Workload) -> Reason:
    """Say that no host in the allowed clusters offers any of the flavors."""
    names = ", ".join(books.snapshot.flavors[flavor] for flavor in workload.flavors)
    asked = workload.min_workers * workload.gpus_per_worker
    nodes = int(_allowed_hosts(books, workload, NO_FLAVOR).sum())
    return Reason(ReasonCode.ACCELERATOR, {"flavor": names, "nodes": nodes, "asked": asked})


def _allowed_hosts(books: Books, workload: Workload, flavor: int) -> BoolArray:
    anywhere = Shape(flavor, 0, 0, 0, 0, 0, workload.clusters, workload.excluded_hosts, frozenset())
    return books.fits.permitted(anywhere)


def _short_resource(books: Books, shape: Shape) -> tuple[NeverLimit, int] | None:
    """Return the first resource of which no permitted host has enough for one worker, and the most."""
    empty = books.ledger.empty
    hosts = books.fits.permitted(shape)
    needs: list[tuple[NeverLimit, int, IntArray]] = [
        (NeverLimit.CPU, shape.cpu, empty.cpu),
        (NeverLimit.MEMORY, shape.memory, empty.memory),
        (NeverLimit.PODS, shape.pods, empty.pods),
    ]
    if shape.gpus:
        needs.insert(0, (NeverLimit.GPUS_PER_NODE, shape.gpus, empty.gpus[shape.flavor]))
    for limit, need, amount in needs:
        most = int(np.max(amount, initial=0, where=hosts))
        if hosts.any() and most < need:
            return limit, most
        hosts = hosts & (amount >= need)
    return None


def _never(books: Books, workload: Workload, flavor: int, limit: NeverLimit, most: int, where: str) -> Reason:
    asked = {
        NeverLimit.QUOTA: workload.min_workers * workload.gpus_per_worker,
        NeverLimit.GPUS_PER_NODE: workload.gpus_per_worker,
        NeverLimit.CPU: workload.cpu_milli,
        NeverLimit.MEMORY: workload.memory_mib,
        NeverLimit.PODS: 1,
    }.get(limit, workload.min_workers)
    name = books.snapshot.flavors[flavor] if flavor != NO_FLAVOR else ""
    return Reason(
        ReasonCode.NEVER_FITS,
        {"limit": limit.value, "most": most, "asked": asked, "flavor": name, "where": where},
    )
