"""Why a workload waits, told from the books as the cycle leaves them (the precedence stands in decide).

Amounts only fall within a cycle, so what did not fit at its turn does not fit at the end either, and the
numbers are those that a page shows after the cycle. Most questions have the form "would it fit if ...": the
same count of workers, on another stock, with closed hosts opened, or with one need left out.
"""

from typing import NamedTuple

import numpy as np

from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Fit, Opening, Shape, shape_of
from jobs.scheduler.ledger import Stock
from jobs.scheduler.never import accelerator_reason, never_reason, offered_flavors
from jobs.scheduler.place import search_of
from jobs.scheduler.types import NO_FLAVOR, BoolArray, IntArray, Reason, ReasonCode, Workload

Numbers = dict[str, int | str]


class Turn(NamedTuple):
    """Where a waiting workload stands: in its queue, and behind what this cycle started before it."""

    position: int
    gpus_ahead: int
    started_ahead: int
    gpus_started: int


class Question(NamedTuple):
    """What the answer about a place depends on; equal questions have equal answers."""

    shape: Shape
    widest: int
    workers: int

    @property
    def asked(self) -> int:
        """Return the least number of GPUs to start with."""
        return self.workers * self.shape.gpus


class ReasonFinder:
    """Finds reasons once admissions are over; answers for equal shapes are worked out once."""

    def __init__(self, books: Books) -> None:
        """Read the final books of a cycle."""
        self._books = books
        self._fits: dict[tuple[Shape, Opening, str], Fit] = {}
        self._places: dict[Question, Reason] = {}
        self._never: dict[tuple[int, Question], Reason | None] = {}

    def reason(self, workload: Workload, turn: Turn) -> Reason:
        """Return the one reason of a workload that was not admitted."""
        if workload.blocked is not None:
            standing = {"position": turn.position, "gpus_ahead": turn.gpus_ahead}
            return Reason(workload.blocked.code, {**workload.blocked.numbers, **standing})
        offered = offered_flavors(self._books, workload)
        if not offered:
            return accelerator_reason(self._books, workload)
        never = {flavor: self._never_reason(workload, flavor) for flavor in offered}
        possible = [flavor for flavor in offered if never[flavor] is None]
        for flavor in possible:
            if self._fitted_at_start(workload, flavor):
                return self._turn_reason(workload, flavor, turn)
        impossible = never[offered[0]]
        if not possible and impossible is not None:
            return impossible
        return self._quota_reason(workload, possible[0]) or self._place_reason(workload, possible[0])

    def _question(self, workload: Workload, flavor: int) -> Question:
        topology = self._books.topology
        widest = search_of(workload, topology).widest
        return Question(shape_of(workload, flavor, topology), widest, workload.min_workers)

    def _never_reason(self, workload: Workload, flavor: int) -> Reason | None:
        try:
            key = (workload.queue, self._question(workload, flavor))
        except ValueError:
            return never_reason(self._books, workload, flavor)
        if key not in self._never:
            self._never[key] = never_reason(self._books, workload, flavor)
        return self._never[key]

    def _fitted_at_start(self, workload: Workload, flavor: int) -> bool:
        question, quota = self._question(workload, flavor), self._books.quota
        if quota.binding(workload.queue, flavor, question.asked, quota.start) is not None:
            return False
        return self._fits_if(question, stock="start")

    def _turn_reason(self, workload: Workload, flavor: int, turn: Turn) -> Reason:
        return Reason(ReasonCode.TURN, {**turn._asdict(), **self._asked(self._question(workload, flavor))})

    def _quota_reason(self, workload: Workload, flavor: int) -> Reason | None:
        question, quota = self._question(workload, flavor), self._books.quota
        node = quota.binding(workload.queue, flavor, question.asked, quota.now)
        if node is None:
            return None
        amounts: Numbers = {
            "queue": quota.ids[node],
            "used": quota.now[node][flavor],
            "nominal": quota.nominal[node][flavor],
        }
        return Reason(ReasonCode.QUOTA, {**amounts, **self._asked(question)})

    def _place_reason(self, workload: Workload, flavor: int) -> Reason:
        question = self._question(workload, flavor)
        if question not in self._places:
            self._places[question] = (
                self._short_resource(question) or self._closed_hosts(question) or self._no_room(question)
            )
        return self._places[question]

    def _short_resource(self, question: Question) -> Reason | None:
        """CPU, memory or pod slots: leave out one need after the other until it fits."""
        stock, shape = self._books.ledger.now, question.shape
        steps = (
            (ReasonCode.CPU, shape._replace(cpu=0), (shape.cpu, stock.cpu)),
            (ReasonCode.MEMORY, shape._replace(cpu=0, memory=0), (shape.memory, stock.memory)),
            (ReasonCode.PODS, shape._replace(cpu=0, memory=0, pods=0), (shape.pods, stock.pods)),
        )
        if not self._fits_if(question._replace(shape=steps[-1][1])):
            return None
        code, _, need = next(step for step in steps if self._fits_if(question._replace(shape=step[1])))
        return self._resource_reason(question, code, need)

    def _resource_reason(self, question: Question, code: ReasonCode, need: tuple[int, IntArray]) -> Reason:
        needed, amount = need
        by_gpus = self._fit(question.shape._replace(cpu=0, memory=0, pods=0), Opening.NOTHING, "now").counts
        short = amount // needed < np.minimum(by_gpus, question.workers)
        numbers: Numbers = {
            "nodes": int(short.sum()),
            "needed": needed,
            "best_free": max(0, int(amount[short].max(initial=0))),
            "fits": self._fit(question.shape, Opening.NOTHING, "now").best[question.widest],
            "workers": question.workers,
        }
        return Reason(code, {**numbers, **self._asked(question)})

    def _closed_hosts(self, question: Question) -> Reason | None:
        """Hosts that take nothing now: open one kind after the other until it fits."""
        if not self._fits_if(question, Opening.STALE):
            return None
        opening = next(
            opening
            for opening in (Opening.CORDONED, Opening.NOT_READY, Opening.STALE)
            if self._fits_if(question, opening)
        )
        if opening is Opening.STALE:
            return self._stale_reason(question)
        fits, shape = self._books.fits, question.shape
        closed = fits.usable(shape, opening) & ~fits.usable(shape, Opening(opening - 1))
        numbers: Numbers = {
            "nodes": int(closed.sum()),
            "usable": self._gpus(shape, self._books.ledger.empty, fits.usable(shape, Opening.NOTHING)),
            "total": self._gpus(shape, self._books.ledger.empty, fits.permitted(shape)),
        }
        code = ReasonCode.CORDONED if opening is Opening.CORDONED else ReasonCode.NOT_READY
        return Reason(code, {**numbers, **self._asked(question)})

    def _stale_reason(self, question: Question) -> Reason:
        """Name the first cluster, by name, where it would fit if the cluster were heard of."""
        books, fits = self._books, self._books.fits
        fit = self._fit(question.shape, Opening.STALE, "now")
        roomy = np.flatnonzero(fit.sums[question.widest] >= question.workers)
        first = books.topology.starts[question.widest][roomy[0]]
        cluster = books.topology.cluster[first]
        there = fits.usable(question.shape, Opening.STALE) & (books.topology.cluster == cluster)
        numbers: Numbers = {
            "cluster": books.snapshot.clusters[cluster],
            "free": self._gpus(question.shape, books.ledger.now, there),
        }
        return Reason(ReasonCode.CLUSTER_STALE, {**numbers, **self._asked(question)})

    def _no_room(self, question: Question) -> Reason:
        shape, widest = question.shape, question.widest
        usable = self._books.fits.usable(shape, Opening.NOTHING)
        free: Numbers = {"free": self._gpus(shape, self._books.ledger.now, usable)}
        if int(free["free"]) < question.asked:
            return Reason(ReasonCode.CAPACITY, {**free, **self._asked(question)})
        topology, fit = self._books.topology, self._fit(shape, Opening.NOTHING, "now")
        best = int(np.argmax(fit.sums[widest] * topology.labelled[widest]))
        numbers: Numbers = {
            "level": topology.levels[widest],
            "fits": fit.best[widest],
            "workers": question.workers,
            "free_nodes": int(np.count_nonzero(fit.counts[topology.span(widest, best)])),
            **{f"fit_{level}": most for level, most in zip(topology.levels, fit.best, strict=True)},
        }
        return Reason(ReasonCode.FRAGMENTATION, {**numbers, **free, **self._asked(question)})

    def _fits_if(self, question: Question, opening: Opening = Opening.NOTHING, stock: str = "now") -> bool:
        return self._fit(question.shape, opening, stock).best[question.widest] >= question.workers

    def _fit(self, shape: Shape, opening: Opening, stock: str) -> Fit:
        key = (shape, opening, stock)
        if key not in self._fits:
            ledger = self._books.ledger
            amounts = ledger.start if stock == "start" else ledger.now
            self._fits[key] = self._books.fits.probe(shape, amounts, opening)
        return self._fits[key]

    def _asked(self, question: Question) -> Numbers:
        flavor = question.shape.flavor
        name = self._books.snapshot.flavors[flavor] if flavor != NO_FLAVOR else ""
        return {"asked": question.asked, "flavor": name}

    def _gpus(self, shape: Shape, stock: Stock, hosts: BoolArray) -> int:
        """Add up the flavor's GPUs over some hosts; over-committed ones count as 0."""
        if shape.flavor == NO_FLAVOR:
            return 0
        return int(np.maximum(stock.gpus[shape.flavor], 0)[hosts].sum())
