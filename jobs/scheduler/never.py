"""What can never start: not even on empty, open hosts with the whole nominal quota.

Taints count as open too, since an administrator may lift them; the request's own constraints (clusters, excluded
hosts, required level, flavors) stay.
"""

import numpy as np

from jobs.scheduler.books import Books
from jobs.scheduler.ledger import CPU, MEMORY, PODS
from jobs.scheduler.request import Request, flavors_of
from jobs.scheduler.shapes import Opening, Shape
from jobs.scheduler.types import NO_FLAVOR, BoolArray, NeverLimit, Reason, ReasonCode, Workload

Short = tuple[NeverLimit, int]


class NeverFinder:
    """Answers about empty hosts, worked out once per shape."""

    def __init__(self, books: Books) -> None:
        """Read the books; nothing here depends on what is free."""
        self._books = books
        self._best: dict[tuple[Shape, int], int] = {}
        self._offered: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}

    def possible_flavor(self, workload: Workload, request: Request | None) -> int | Reason:
        """Return the first flavor on which the workload could start some day, or why there is none."""
        offered = [flavor for flavor in flavors_of(workload) if self._is_offered(workload, flavor)]
        if not offered:
            return self._accelerator(workload)
        reasons = []
        for flavor in offered:
            reason = self._on_flavor(workload, request, flavor)
            if reason is None:
                return flavor
            reasons.append(reason)
        return reasons[0]

    def _on_flavor(self, workload: Workload, request: Request | None, flavor: int) -> Reason | None:
        """Return which limit the workload breaks for good on one flavor that is offered."""
        if request is None:
            return self._never(workload, flavor, (NeverLimit.LEVEL, 0), workload.level)
        quota = self._books.quota
        asked = workload.min_workers * workload.gpus_per_worker
        small = quota.too_small(workload.queue, flavor, asked) if asked else None
        if small is not None:
            return self._never(workload, flavor, (NeverLimit.QUOTA, quota.nominal[small][flavor]), quota.ids[small])
        shape = next(shape for shape in request.shapes if shape.flavor == flavor)
        if self._books.fits.held_at_start(shape, request.widest, workload.min_workers):
            return None
        most = self._most_workers(shape, request.widest)
        if most >= workload.min_workers:
            return None
        short = self._short_resource(shape) or (NeverLimit.WORKERS, most)
        return self._never(workload, flavor, short, self._books.topology.levels[request.widest])

    def _most_workers(self, shape: Shape, level: int) -> int:
        key = (shape, level)
        if key not in self._best:
            self._best[key] = self._books.fits.probe(shape, self._books.ledger.empty, Opening.TOO_OLD).best(level)
        return self._best[key]

    def _is_offered(self, workload: Workload, flavor: int) -> bool:
        """Return whether any host that clusters and exclusions leave to the workload has the flavor."""
        key = (flavor, workload.clusters, workload.excluded_hosts)
        if key not in self._offered:
            self._offered[key] = bool(self._allowed_hosts(workload, flavor).any())
        return self._offered[key]

    def _allowed_hosts(self, workload: Workload, flavor: int) -> BoolArray:
        anywhere = Shape(flavor, 0, 0, 0, 0, 0, workload.clusters, workload.excluded_hosts, frozenset())
        return self._books.gates.permitted(anywhere)

    def _short_resource(self, shape: Shape) -> Short | None:
        """Return the first resource of which no permitted host has enough for one worker, and the most there is."""
        hosts = self._books.gates.permitted(shape)
        needs = [
            (NeverLimit.GPUS_PER_NODE, shape.flavor, shape.gpus),
            (NeverLimit.CPU, CPU, shape.cpu),
            (NeverLimit.MEMORY, MEMORY, shape.memory),
            (NeverLimit.PODS, PODS, shape.pods),
        ]
        for limit, row, need in needs:
            amounts = self._books.ledger.empty[row]
            most = int(np.max(amounts, initial=0, where=hosts))
            if need and hosts.any() and most < need:
                return limit, most
            hosts = hosts & ((amounts >= need) | (need == 0))
        return None

    def _accelerator(self, workload: Workload) -> Reason:
        names = ", ".join(self._books.snapshot.flavors[flavor] for flavor in workload.flavors)
        asked = workload.min_workers * workload.gpus_per_worker
        nodes = int(self._allowed_hosts(workload, NO_FLAVOR).sum())
        return Reason(ReasonCode.ACCELERATOR, {"flavor": names, "nodes": nodes, "asked": asked})

    def _never(self, workload: Workload, flavor: int, short: Short, where: str) -> Reason:
        limit, most = short
        asked = {
            NeverLimit.QUOTA: workload.min_workers * workload.gpus_per_worker,
            NeverLimit.GPUS_PER_NODE: workload.gpus_per_worker,
            NeverLimit.CPU: workload.cpu_milli,
            NeverLimit.MEMORY: workload.memory_mib,
            NeverLimit.PODS: 1,
        }.get(limit, workload.min_workers)
        name = self._books.snapshot.flavors[flavor] if flavor != NO_FLAVOR else ""
        numbers = {"limit": limit.value, "most": most, "asked": asked, "flavor": name, "where": where}
        return Reason(ReasonCode.NEVER_FITS, numbers)
