"""How many workers of one shape fit on each host and in each domain.

A host holds min over its resources of free // needed workers, if the workload may use it at all; a domain holds the
sum over its hosts, since a worker is never split. Figures are kept per shape and brought up to date from a log of the
places that changed: a cycle with many gangs of few shapes counts few hosts anew.
"""

import numpy as np

from jobs.scheduler.ledger import CPU, MEMORY, PODS, Ledger
from jobs.scheduler.shapes import Gates, Opening, Pool, Shape, drop_oldest
from jobs.scheduler.types import NO_FLAVOR, BoolArray, IntArray

Layout = list[tuple[int, int]]  # (place, workers there), ascending

PLENTY = 1_000_000  # workers on a host when nothing limits them; small enough that sums stay exact
FEW = 24  # places that are counted again one by one: so few cost more as arrays
FEW_CHANGED = 4  # a log is short while so many times its length is not more than the places
MOST_KEPT = 256  # shapes whose figures are kept; more distinct shapes cost time, not memory


class Fit:
    """Workers of one shape that fit: counts (P,) per place of its pool, sums (D_l,) per domain of a level.

    usable: (P,) where the shape may go; counts are 0 elsewhere. needs: (R,) what a worker takes from each row of a
    stock. seen: how much of the log of its flavor the counts reflect.
    """

    __slots__ = ("_amounts", "_best", "_needed", "_rows", "_sums", "counts", "needs", "pool", "seen", "usable")

    def __init__(self, pool: Pool, shape: Shape, usable: BoolArray, stock: IntArray) -> None:
        """Count on a whole stock."""
        self.needs = _needs(shape, len(stock))
        self._rows = self.needs.nonzero()[0][:, np.newaxis]
        self._amounts = self.needs[self._rows].astype(np.float64)
        self._needed = [(row, int(self.needs[row])) for row in self._rows[:, 0].tolist()]
        self._sums: list[IntArray] = []
        self._best: dict[int, int] = {}
        self.pool = pool
        self.usable = usable
        self.counts = np.where(usable, PLENTY, 0)
        for row in self._rows[:, 0].tolist():  # one array of all rows would not stay in the processor's cache
            np.minimum(self.counts, stock[row][pool.at] // int(self.needs[row]), out=self.counts)
        np.maximum(self.counts, 0, out=self.counts)
        self.seen = 0

    def update(self, stock: IntArray, changed: set[int]) -> None:
        """Count again at some places. Amounts only fall, so full hosts need no look."""
        if not self._needed:
            return
        self._best = {}
        if len(changed) <= FEW:
            self._recount(stock, changed)
            return
        places = np.array(list(changed))
        places = places[self.counts[places] > 0]
        amounts = stock[self._rows, self.pool.at[places]]
        # In floats, since dividing integers by an array is slow. Exact below 2**53; the assignment cuts to the floor.
        self.counts[places] = np.minimum.reduce(amounts / self._amounts)
        self._sums = []

    def _recount(self, stock: IntArray, changed: set[int]) -> None:
        """Count again place by place, and carry the differences up to the sums."""
        counts, at = self.counts, self.pool.at
        differences = {}
        for place in changed:
            before = counts.item(place)
            if not before:
                continue
            position = at.item(place)
            now = min([stock.item(row, position) // need for row, need in self._needed])
            if now != before:
                counts[place] = now
                differences[place] = now - before
        if self._sums:
            self._carry(differences)

    def _carry(self, differences: dict[int, int]) -> None:
        """Add differences by place to the sums of every level above the node."""
        parent = self.pool.topology.parent
        for level in range(len(self._sums) - 2, -1, -1):
            above: dict[int, int] = {}
            for domain, difference in differences.items():
                enclosing = parent[level + 1].item(domain)
                above[enclosing] = above.get(enclosing, 0) + difference
            for domain, difference in above.items():
                self._sums[level][domain] += difference
            differences = above

    def sums(self, level: int) -> IntArray:
        """Return (D_l,) workers per domain of a level."""
        if not self._sums:
            self._sums = self.pool.topology.sums(self.counts)
        return self._sums[level]

    def best(self, level: int) -> int:
        """Return the most workers that one labelled domain of the level holds."""
        if level not in self._best:
            self._best[level] = self.pool.topology.most(level, self.sums(level))
        return self._best[level]

    def most(self) -> list[int]:
        """Return the most workers that one labelled domain holds, for each level."""
        return [self.best(level) for level in range(self.pool.topology.node + 1)]


class FitTable:
    """Fits of the shapes met in this cycle, and per flavor a log of the places whose amounts have changed."""

    def __init__(self, gates: Gates, ledger: Ledger) -> None:
        """Start empty."""
        self._gates = gates
        self._ledger = ledger
        self._fits: dict[Shape, Fit] = {}
        self._logs: dict[int, list[int]] = {}
        self._taken: set[int] = set()  # flavors of which something was booked
        self._begun_late: set[int] = set()  # flavors whose log does not tell all since the cycle began
        self._at_start: dict[Shape, list[int]] = {}
        self._free: dict[int, IntArray] = {}

    def current(self, shape: Shape, level: int, need: int) -> Fit | None:
        """Return the up-to-date fit, or None where no domain of `level` holds `need` workers."""
        log = self._log(shape.flavor)
        fit = self._fits.get(shape)
        if fit is None:
            fit = self._fits[shape] = self._first_count(shape, log)
            drop_oldest(self._fits, MOST_KEPT)
        if fit.seen < len(log):
            if fit.best(level) < need:  # an old figure is an upper bound: too low once is too low for good
                return None
            fit.update(self._ledger.now, set(log[fit.seen :]))
            fit.seen = len(log)
        return fit if fit.best(level) >= need else None

    def _log(self, flavor: int) -> list[int]:
        """Return the log of a flavor, begun when it is first asked for."""
        if flavor not in self._logs:
            self._logs[flavor] = []
            if any(self._ledger.share_hosts(flavor, other) for other in self._taken):
                self._begun_late.add(flavor)
        return self._logs[flavor]

    def _first_count(self, shape: Shape, log: list[int]) -> Fit:
        """Count as the cycle began while little has changed since: a job that must wait will ask for that figure."""
        is_long = FEW_CHANGED * len(log) > len(self._gates.pool(shape.flavor).at)
        if is_long or shape.flavor in self._begun_late:
            fit = self.probe(shape, self._ledger.now, Opening.NOTHING)
            fit.seen = len(log)
            return fit
        fit = self.probe(shape, self._ledger.start, Opening.NOTHING)
        self._at_start[shape] = fit.most()
        return fit

    def at_start(self, shape: Shape, level: int) -> int:
        """Return the most workers that one labelled domain of the level held when the cycle began."""
        if shape not in self._at_start:
            self._at_start[shape] = self.probe(shape, self._ledger.start, Opening.NOTHING).most()
        return self._at_start[shape][level]

    def held_at_start(self, shape: Shape, level: int, workers: int) -> bool:
        """Return whether it is known already that so many fitted when the cycle began."""
        return shape in self._at_start and self._at_start[shape][level] >= workers

    def free(self, flavor: int) -> IntArray:
        """Return (P,) the free GPUs of each place of a flavor's pool; free pod slots for NO_FLAVOR."""
        if flavor == NO_FLAVOR:  # every host is in this pool, in the ledger's own order
            slots: IntArray = self._ledger.now[PODS]
            return slots
        free = self._free.get(flavor)
        if free is None:
            free = self._free[flavor] = self._ledger.now[flavor][self._gates.pool(flavor).at]
        return free

    def take(self, shape: Shape, fit: Fit, layout: Layout) -> None:
        """Book workers of the shape whose fit is current, at distinct places."""
        flavor, free = shape.flavor, self.free(shape.flavor)
        self._taken.add(flavor)
        if shape.gpus:
            for place, workers in layout:
                free[place] -= workers * shape.gpus
        positions = [fit.pool.at.item(place) for place, _ in layout]
        self._ledger.take(fit.needs, [(at, workers) for at, (_, workers) in zip(positions, layout, strict=True)])
        for other, log in self._logs.items():
            if other == flavor:
                log += [place for place, _ in layout]
            elif self._ledger.share_hosts(flavor, other):
                places = self._gates.pool(other).local[positions]
                log += places[places >= 0].tolist()

    def probe(self, shape: Shape, stock: IntArray, opening: Opening) -> Fit:
        """Return the fit on any stock, with closed hosts opened."""
        return Fit(self._gates.pool(shape.flavor), shape, self._gates.usable(shape, opening), stock)


def _needs(shape: Shape, rows: int) -> IntArray:
    needs = np.zeros(rows, dtype=np.int64)
    needs[CPU], needs[MEMORY], needs[PODS] = shape.cpu, shape.memory, shape.pods
    if shape.gpus:
        needs[shape.flavor] = shape.gpus
    return needs
