"""Why a workload waits, told from the books as the cycle leaves them (the precedence stands in decide).

Amounts only fall within a cycle, so what did not fit at its turn does not fit at the end either, and the numbers are
those that a page shows after the cycle. Most questions have the form "would it fit if ...": the same count of
workers, on another stock, with closed hosts opened, or with needs left out.
"""

from typing import NamedTuple

import numpy as np

from jobs.scheduler.books import Books
from jobs.scheduler.feasibility import Fit
from jobs.scheduler.ledger import CPU, MEMORY, PODS
from jobs.scheduler.never import NeverFinder
from jobs.scheduler.request import Request
from jobs.scheduler.shapes import Opening, Shape
from jobs.scheduler.types import NO_FLAVOR, IntArray, Reason, ReasonCode, Workload

Numbers = dict[str, int | str]


# What closes all hosts of a cluster at once.
_OF_CLUSTERS = {Opening.STALE: ReasonCode.CLUSTER_STALE, Opening.TOO_OLD: ReasonCode.CLUSTER_TOO_OLD}


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

    def without(self, **needs: int) -> "Question":
        """Return the question with other needs."""
        return self._replace(shape=self.shape._replace(**needs))  # type: ignore[arg-type]  # only int fields are needs


class ReasonFinder:
    """Finds reasons once admissions are over; answers to equal questions are worked out once."""

    def __init__(self, books: Books) -> None:
        """Read the final books of a cycle."""
        self._books = books
        self._never = NeverFinder(books)
        self._fits: dict[tuple[Shape, Opening], Fit] = {}
        self._asked_before: dict[tuple[int, int], tuple[Question, ...]] = {}
        self._possible: dict[tuple[int, int, int], int | Reason] = {}
        self._places: dict[Question, Reason] = {}

    def reason(self, workload: Workload, request: Request | None, turn: Turn) -> Reason:
        """Return the one reason of a workload that was not admitted."""
        if workload.blocked is not None:
            standing = {"position": turn.position, "gpus_ahead": turn.gpus_ahead}
            return Reason(workload.blocked.code, {**workload.blocked.numbers, **standing})
        questions = self._questions(workload, request)
        for question in questions:
            if self._fitted_at_start(workload, question):
                return Reason(ReasonCode.TURN, {**_standing(turn), **self._asked(question)})
        flavor = self._possible_flavor(workload, request)
        if isinstance(flavor, Reason):
            return flavor
        question = next(question for question in questions if question.shape.flavor == flavor)
        return self._quota_reason(workload, question) or self._place_reason(question)

    def _possible_flavor(self, workload: Workload, request: Request | None) -> int | Reason:
        """Ask once for each queue, request and least number of workers."""
        if request is None:
            return self._never.possible_flavor(workload, None)
        key = (workload.queue, request.number, workload.min_workers)
        if key not in self._possible:
            self._possible[key] = self._never.possible_flavor(workload, request)
        return self._possible[key]

    def _questions(self, workload: Workload, request: Request | None) -> tuple[Question, ...]:
        """Return one question per flavor, in order of preference; none if the required level is unknown."""
        if request is None:
            return ()
        key = (request.number, workload.min_workers)
        if key not in self._asked_before:
            self._asked_before[key] = tuple(
                Question(shape, request.widest, workload.min_workers) for shape in request.shapes
            )
        return self._asked_before[key]

    def _fitted_at_start(self, workload: Workload, question: Question) -> bool:
        quota, shape = self._books.quota, question.shape
        if quota.binding(workload.queue, shape.flavor, question.asked, quota.start) is not None:
            return False
        return self._books.fits.at_start(shape, question.widest) >= question.workers

    def _quota_reason(self, workload: Workload, question: Question) -> Reason | None:
        quota, flavor = self._books.quota, question.shape.flavor
        node = quota.binding(workload.queue, flavor, question.asked, quota.now)
        if node is None:
            return None
        numbers: Numbers = {
            "queue": quota.ids[node],
            "used": quota.now[node][flavor],
            "nominal": quota.nominal[node][flavor],
        }
        return Reason(ReasonCode.QUOTA, {**numbers, **self._asked(question)})

    def _place_reason(self, question: Question) -> Reason:
        if question not in self._places:
            self._places[question] = (
                self._short_resource(question) or self._closed_hosts(question) or self._no_room(question)
            )
        return self._places[question]

    def _short_resource(self, question: Question) -> Reason | None:
        """CPU, memory or pod slots: leave out one need after the other until it fits."""
        shape = question.shape
        steps = (
            (ReasonCode.CPU, question.without(cpu=0), (CPU, shape.cpu)),
            (ReasonCode.MEMORY, question.without(cpu=0, memory=0), (MEMORY, shape.memory)),
            (ReasonCode.PODS, question.without(cpu=0, memory=0, pods=0), (PODS, shape.pods)),
        )
        if not self._fits_if(steps[-1][1]):
            return None
        code, _, need = next(step for step in steps if self._fits_if(step[1]))
        return self._resource_reason(question, code, need)

    def _resource_reason(self, question: Question, code: ReasonCode, need: tuple[int, int]) -> Reason:
        row, needed = need
        by_gpus = self._fit(question.without(cpu=0, memory=0, pods=0).shape)
        amount = self._books.ledger.now[row][by_gpus.pool.at]
        short = by_gpus.usable & (amount // needed < np.minimum(by_gpus.counts, question.workers))
        numbers: Numbers = {
            "nodes": int(short.sum()),
            "needed": needed,
            "best_free": int(amount[short].max(initial=0)),
            "fits": self._fit(question.shape).best(question.widest),
            "workers": question.workers,
        }
        return Reason(code, {**numbers, **self._asked(question)})

    def _closed_hosts(self, question: Question) -> Reason | None:
        """Hosts that take nothing now: open one kind after the other until it fits."""
        if not self._fits_if(question, Opening.TOO_OLD):
            return None
        kinds = (Opening.CORDONED, Opening.NOT_READY, Opening.STALE, Opening.TOO_OLD)
        opening = next(opening for opening in kinds if self._fits_if(question, opening))
        if opening in _OF_CLUSTERS:
            return self._cluster_reason(question, opening)
        shape, empty = question.shape, self._books.ledger.empty
        usable, before, after = (self._positions(shape, kind) for kind in (Opening.NOTHING, opening - 1, opening))
        numbers: Numbers = {
            "nodes": len(after) - len(before),
            "usable": self._gpus(shape, empty, usable),
            "total": self._gpus(shape, empty, self._positions(shape, Opening.TOO_OLD)),
        }
        code = ReasonCode.CORDONED if opening is Opening.CORDONED else ReasonCode.NOT_READY
        return Reason(code, {**numbers, **self._asked(question)})

    def _cluster_reason(self, question: Question, opening: Opening) -> Reason:
        """Name the first cluster, by name, where it would fit if the cluster were heard of, or newer."""
        widest, fit = question.widest, self._fit(question.shape, opening)
        topology = fit.pool.topology
        roomy = topology.holding(widest, fit.sums(widest), question.workers)
        cluster = topology.cluster[topology.starts[widest][roomy[0]]]
        there = fit.pool.at[fit.usable & (topology.cluster == cluster)]
        numbers: Numbers = {
            "cluster": self._books.snapshot.clusters[cluster],
            "free": self._gpus(question.shape, self._books.ledger.now, there),
        }
        return Reason(_OF_CLUSTERS[opening], {**numbers, **self._asked(question)})

    def _no_room(self, question: Question) -> Reason:
        fit, widest = self._fit(question.shape), question.widest
        topology = fit.pool.topology
        free = self._gpus(question.shape, self._books.ledger.now, fit.pool.at[fit.usable])
        if free < question.asked:
            return Reason(ReasonCode.CAPACITY, {"free": free, **self._asked(question)})
        most = fit.best(widest)
        roomiest = topology.holding(widest, fit.sums(widest), most)[:1] if most else ()
        numbers: Numbers = {
            "level": topology.levels[widest],
            "fits": most,
            "workers": question.workers,
            "free_nodes": sum(int(np.count_nonzero(fit.counts[topology.span(widest, best)])) for best in roomiest),
            "free": free,
        }
        per_level = {f"fit_{name}": fit.best(level) for level, name in enumerate(topology.levels)}
        return Reason(ReasonCode.FRAGMENTATION, {**numbers, **per_level, **self._asked(question)})

    def _fits_if(self, question: Question, opening: Opening = Opening.NOTHING) -> bool:
        return self._fit(question.shape, opening).best(question.widest) >= question.workers

    def _fit(self, shape: Shape, opening: Opening = Opening.NOTHING) -> Fit:
        key = (shape, opening)
        if key not in self._fits:
            self._fits[key] = self._books.fits.probe(shape, self._books.ledger.now, opening)
        return self._fits[key]

    def _asked(self, question: Question) -> Numbers:
        flavor = question.shape.flavor
        name = self._books.snapshot.flavors[flavor] if flavor != NO_FLAVOR else ""
        return {"asked": question.asked, "flavor": name}

    def _positions(self, shape: Shape, opening: int) -> IntArray:
        gates = self._books.gates
        return gates.pool(shape.flavor).at[gates.usable(shape, Opening(opening))]

    def _gpus(self, shape: Shape, stock: IntArray, positions: IntArray) -> int:
        """Add up the flavor's GPUs over some hosts; over-committed ones count as 0."""
        if shape.flavor == NO_FLAVOR:
            return 0
        return int(np.maximum(stock[shape.flavor][positions], 0).sum())


def _standing(turn: Turn) -> Numbers:
    return {
        "position": turn.position,
        "gpus_ahead": turn.gpus_ahead,
        "started_ahead": turn.started_ahead,
        "gpus_started": turn.gpus_started,
    }
