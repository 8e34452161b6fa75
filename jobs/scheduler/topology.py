"""Hosts in one canonical order in which every domain of every level is a contiguous run.

Levels are numbered from 0 = cluster over the snapshot's own levels to the last = node. A domain is told
apart by its label *and* its enclosing domain, so the levels always nest, whatever the labels say. Hosts
without a label form an unlabelled rest inside the enclosing domain: it counts for wider levels, but is no
domain itself.
"""

from dataclasses import dataclass

import numpy as np

from jobs.scheduler.types import CLUSTER, BoolArray, IntArray, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """D_l domains at level l; "position" is a place in the canonical order.

    levels: names; node: number of the narrowest. order: (H,) position -> host. cluster: (H,) by position.
    segment[l]: (H,) domain of each position. starts[l]: (D_l,) first position.
    labelled[l]: (D_l,) false for the rest without a label. fully_labelled[l]: whether there is no such rest.
    first_child[l]: (D_l,) first domain of level l + 1. parent[l]: (D_l,) domain of level l - 1.
    """

    levels: tuple[str, ...]
    node: int
    order: IntArray
    cluster: IntArray
    segment: tuple[IntArray, ...]
    starts: tuple[IntArray, ...]
    labelled: tuple[BoolArray, ...]
    fully_labelled: tuple[bool, ...]
    first_child: tuple[IntArray, ...]
    parent: tuple[IntArray, ...]

    def sums(self, per_host: IntArray) -> list[IntArray]:
        """Add a (H,) column up to the domains of every level: (D_l,) each, the last is the column itself."""
        sums = [per_host] * (self.node + 1)
        if len(per_host):
            for level in range(self.node - 1, -1, -1):  # each from the one below: only the first step is wide
                sums[level] = np.add.reduceat(sums[level + 1], self.first_child[level])
        return sums

    def most(self, level: int, sums: IntArray) -> int:
        """Return the largest of a level's sums over its labelled domains, 0 if there are none."""
        column = sums if self.fully_labelled[level] else sums * self.labelled[level]
        return int(column[column.argmax()]) if len(column) else 0  # argmax is several times faster than max

    def holding(self, level: int, sums: IntArray, workers: int) -> IntArray:
        """Return the labelled domains of a level whose sum is at least `workers`, in order."""
        holds = sums >= workers
        return (holds if self.fully_labelled[level] else holds & self.labelled[level]).nonzero()[0]

    def children(self, level: int, domain: int) -> slice:
        """Return the domains of level + 1 inside a domain."""
        first = self.first_child[level]
        last = first[domain + 1] if domain + 1 < len(first) else len(self.starts[level + 1])
        return slice(int(first[domain]), int(last))

    def span(self, level: int, domain: int) -> slice:
        """Return the positions inside a domain."""
        starts = self.starts[level]
        last = starts[domain + 1] if domain + 1 < len(starts) else len(self.order)
        return slice(int(starts[domain]), int(last))

    def common_level(self, first: int, last: int) -> int:
        """Return the lowest level whose one domain holds two positions of one cluster, hence all between."""
        if first == last:
            return self.node
        for level in range(self.node - 1, 0, -1):
            domain = self.segment[level][first]
            if domain == self.segment[level][last] and self.labelled[level][domain]:
                return level
        return 0


def build_topology(snapshot: Snapshot) -> Topology:
    """Sort hosts by cluster name, then domain by domain; a domain's place is that of its smallest host id."""
    by_id, cluster = _by_identifier(snapshot)
    labels = snapshot.hosts.domains[by_id, : len(snapshot.levels) - 1].T
    keys = _domain_keys(cluster, labels)
    inner = np.lexsort((np.arange(len(by_id)), *reversed(keys)))
    known = [np.ones(len(by_id), dtype=bool), *(column >= 0 for column in labels)]
    columns = [(key[inner], is_known[inner]) for key, is_known in zip(keys, known, strict=True)]
    order = by_id[inner]
    return _arrange((CLUSTER, *snapshot.levels), order, snapshot.hosts.cluster[order], columns)


def restrict(topology: Topology, positions: IntArray) -> Topology:
    """Return the topology of some hosts only: `positions` ascending; domains without any of them vanish."""
    columns = []
    for segment, labelled in zip(topology.segment[:-1], topology.labelled[:-1], strict=True):
        mine = segment[positions]
        columns.append((mine, labelled[mine]))
    return _arrange(topology.levels, topology.order[positions], topology.cluster[positions], columns)


def _arrange(
    levels: tuple[str, ...], order: IntArray, cluster: IntArray, columns: list[tuple[IntArray, BoolArray]]
) -> Topology:
    """Cut hosts in canonical order into domains: per level above node a key and whether it is a label."""
    nodes = np.arange(len(order))
    segment, starts, labelled = [], [], []
    for key, is_known in columns:
        is_first = np.ones(len(key), dtype=bool)
        np.not_equal(key[1:], key[:-1], out=is_first[1:])
        segment.append(is_first.cumsum() - 1)
        starts.append(is_first.nonzero()[0])
        labelled.append(is_known[starts[-1]])
    segment.append(nodes)
    starts.append(nodes)
    labelled.append(np.ones(len(order), dtype=bool))
    return Topology(
        levels=levels,
        node=len(columns),
        order=order,
        cluster=cluster,
        segment=tuple(segment),
        starts=tuple(starts),
        labelled=tuple(labelled),
        fully_labelled=tuple(bool(known.all()) for known in labelled),
        first_child=tuple(segment[level + 1][starts[level]] for level in range(len(columns))),
        parent=tuple(segment[max(level - 1, 0)][starts[level]] for level in range(len(starts))),
    )


def _by_identifier(snapshot: Snapshot) -> tuple[IntArray, IntArray]:
    """Return the hosts sorted by cluster name and id, and the rank of each one's cluster name."""
    ids = snapshot.hosts.ids
    by_name = sorted(range(len(snapshot.clusters)), key=snapshot.clusters.__getitem__)
    rank = np.empty(len(by_name), dtype=np.int64)
    rank[by_name] = np.arange(len(by_name))
    by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    cluster = rank[snapshot.hosts.cluster[by_id]]
    by_cluster = np.argsort(cluster, kind="stable")
    return by_id[by_cluster], cluster[by_cluster]


def _domain_keys(cluster: IntArray, labels: IntArray) -> list[IntArray]:
    """Return one sort key per level above node: (H,) the rank of the domain's first host, unlabelled last."""
    keys = [cluster]
    group = cluster
    for label in labels:
        pair = group * (label.max(initial=0) + 2) + label + 1
        _, first, group = np.unique(pair, return_index=True, return_inverse=True)
        keys.append(np.where(label < 0, first[group] + len(cluster), first[group]))
    return keys
