"""Hierarchical quota without borrowing: a workload charges its queue and every cohort above it.

Source of the shape: hierarchical resource quota as in Kueue, nominal amounts only. Whole GPUs, exact.
"""

from jobs.scheduler.types import UNLIMITED, QuotaTree

Usage = list[list[int]]
NO_LIMIT = 2**62


class QuotaBook:
    """The tree's nominal amounts, and its usage at the start of the cycle and now: [node][flavor]."""

    def __init__(self, tree: QuotaTree) -> None:
        """Add each node's own usage up the tree. Raise ValueError if the parents form a circle."""
        self.ids = tree.ids
        self.nominal: Usage = tree.nominal.tolist()
        self.chains = _chains(tree.parent.tolist())
        self.now: Usage = [[0] * len(row) for row in self.nominal]
        for node, row in enumerate(tree.used.tolist()):
            for flavor, gpus in enumerate(row):
                self.charge(node, flavor, gpus)
        self.start: Usage = [row.copy() for row in self.now]

    def charge(self, queue: int, flavor: int, gpus: int) -> None:
        """Book GPUs on a queue and on every node above it."""
        for node in self.chains[queue]:
            self.now[node][flavor] += gpus

    def room(self, queue: int, flavor: int, used: Usage) -> int:
        """Return how many GPUs the queue may still take: negative after a cap was lowered, at most NO_LIMIT."""
        room = NO_LIMIT
        for node in self.chains[queue]:
            nominal = self.nominal[node][flavor]
            if nominal != UNLIMITED and nominal - used[node][flavor] < room:
                room = nominal - used[node][flavor]
        return room

    def binding(self, queue: int, flavor: int, asked: int, used: Usage) -> int | None:
        """Return the first node, from the queue upwards, whose cap `asked` more GPUs would exceed."""
        for node in self.chains[queue]:
            nominal = self.nominal[node][flavor]
            if nominal != UNLIMITED and used[node][flavor] + asked > nominal:
                return node
        return None

    def too_small(self, queue: int, flavor: int, asked: int) -> int | None:
        """Return the first node, from the queue upwards, whose whole nominal amount is less than asked."""
        for node in self.chains[queue]:
            nominal = self.nominal[node][flavor]
            if nominal != UNLIMITED and nominal < asked:
                return node
        return None


def _chains(parent: list[int]) -> list[tuple[int, ...]]:
    """Return for each node itself and all nodes above it."""
    chains = []
    for node in range(len(parent)):
        chain = [node]
        while (above := parent[chain[-1]]) >= 0:
            if above in chain:
                raise ValueError(f"quota nodes {chain} form a circle")
            chain.append(above)
        chains.append(tuple(chain))
    return chains
