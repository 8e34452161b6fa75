"""The same admissions as decide(), worked out the usual way: a loop over node objects for every gang.

Fair to the loop: nodes are sorted and filtered once per kind of request, full nodes are skipped at the first glance,
a request that found no place is not tried again (amounts only fall), and no reasons are worked out. It covers what
the benchmark's fleets have: one flavor per host and every level labelled.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.scheduler.types import (
    CLUSTER,
    UNLIMITED,
    Admission,
    Hold,
    Placement,
    Snapshot,
    SpreadPolicy,
    TopologyMode,
    Workload,
)

Layout = list[tuple["Node", int]]


@dataclass(slots=True, eq=False)
class Node:
    """One host; domains: cluster, then the snapshot's levels, the last is the host itself."""

    host: int
    position: int
    domains: tuple[int, ...]
    gpus: int
    cpu: int
    memory: int
    pods: int


def loop_decide(snapshot: Snapshot) -> tuple[Admission, ...]:
    """Return the admissions of decide(snapshot)."""
    return Loop(snapshot).run()


class Loop:
    """One cycle."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.levels = (CLUSTER, *snapshot.levels)
        self.nodes = _nodes(snapshot)
        self.parent = snapshot.quota.parent.tolist()
        self.nominal = snapshot.quota.nominal.tolist()
        self.used = [[0] * len(row) for row in self.nominal]
        for queue, row in enumerate(snapshot.quota.used.tolist()):
            for flavor, gpus in enumerate(row):
                self._charge(queue, flavor, gpus)
        self.usable: dict[tuple[object, ...], list[Node]] = {}
        self.most: dict[tuple[object, ...], int] = {}

    def run(self) -> tuple[Admission, ...]:
        """Try every gang in order."""
        order = sorted(self.snapshot.workloads, key=lambda one: (-one.priority, one.submitted_at, one.id))
        admissions = (self._start(workload) for workload in order if workload.blocked is None)
        return tuple(admission for admission in admissions if admission)

    def _start(self, workload: Workload) -> Admission | None:
        required = workload.topology is TopologyMode.REQUIRE
        widest = self.levels.index(workload.level) if required else 0
        for flavor in workload.flavors:
            least, most = workload.min_workers, min(workload.workers, self._quota_workers(workload, flavor))
            shape = (flavor, workload.gpus_per_worker, workload.cpu_milli, workload.memory_mib, workload.clusters)
            key = (*shape, workload.excluded_hosts, workload.tolerated, widest)
            if most < least or self.most.get(key, least) < least:
                continue
            counts = self._counts(workload, flavor)
            sums = self._sums(counts)
            self.most[key] = max(sums[widest].values(), default=0)
            workers = min(most, self.most[key])
            if workers >= least:
                return self._admit(
                    workload, flavor, workers, self._layout(workload, (flavor, widest), workers, (counts, sums))
                )
        return None

    def _quota_workers(self, workload: Workload, flavor: int) -> int:
        room, node = 2**62, workload.queue
        while node >= 0:
            if self.nominal[node][flavor] != UNLIMITED:
                room = min(room, self.nominal[node][flavor] - self.used[node][flavor])
            node = self.parent[node]
        return room // workload.gpus_per_worker

    def _counts(self, workload: Workload, flavor: int) -> Layout:
        gpus, cpu, memory = workload.gpus_per_worker, workload.cpu_milli, workload.memory_mib
        counts = []
        for node in self._usable(workload, flavor):
            if node.gpus >= gpus:
                workers = min(node.gpus // gpus, node.cpu // cpu, node.memory // memory, node.pods)
                if workers > 0:
                    counts.append((node, workers))
        return counts

    def _usable(self, workload: Workload, flavor: int) -> list[Node]:
        key = (flavor, workload.clusters, workload.excluded_hosts, workload.tolerated)
        if key not in self.usable:
            hosts = self.snapshot.hosts
            self.usable[key] = [
                node
                for node in self.nodes[flavor]
                if hosts.hold[node.host] == Hold.NONE
                and (hosts.taints[node.host] == 0 or hosts.taints[node.host] in workload.tolerated)
                and (not workload.clusters or node.domains[0] in workload.clusters)
                and node.host not in workload.excluded_hosts
            ]
        return self.usable[key]

    def _sums(self, counts: Layout) -> list[dict[int, int]]:
        sums: list[dict[int, int]] = [defaultdict(int) for _ in self.levels]
        for node, workers in counts:
            for level, domain in zip(sums, node.domains, strict=True):
                level[domain] += workers
        return sums

    def _layout(
        self, workload: Workload, on: tuple[int, int], workers: int, fit: tuple[Layout, list[dict[int, int]]]
    ) -> Layout:
        (flavor, widest), (counts, sums) = on, fit
        spread = workload.spread is SpreadPolicy.SPREAD or (
            workload.spread is SpreadPolicy.AUTO and workload.is_service
        )
        free = workload.topology is TopologyMode.NONE
        level = 0 if free else widest if spread else len(self.levels) - 1
        while not any(most >= workers for most in sums[level].values()):
            level -= 1
        domain = self._tightest(level, workers, self._usable(workload, flavor), fit)
        inside = [(node, count) for node, count in counts if node.domains[level] == domain]
        if spread:
            return list(self._spread(inside, level, workers))
        return list(self._tight_first(inside, workers)) if free else list(self._pack(inside, level, workers))

    def _tightest(self, level: int, workers: int, usable: list[Node], fit: tuple[Layout, list[dict[int, int]]]) -> int:
        counts, sums = fit
        best: tuple[int, ...] = ()
        chosen = -1
        free: dict[int, int] = defaultdict(int)
        if level < len(self.levels) - 1:
            for node in usable:
                free[node.domains[level]] += node.gpus
        for node, _ in counts:
            domain = node.domains[level]
            if domain == chosen or sums[level][domain] < workers:
                continue
            above = sums[level - 1][node.domains[level - 1]] if level else 0
            tight = (sums[level][domain], free[domain], above) if free else (node.gpus, above)
            if not best or tight < best:
                best, chosen = tight, domain
        return chosen

    def _pack(self, inside: Layout, level: int, workers: int) -> Iterator[tuple[Node, int]]:
        if level >= len(self.levels) - 2:
            yield from self._tight_first(inside, workers)
            return
        inner: dict[int, Layout] = defaultdict(list)
        for node, count in inside:
            inner[node.domains[level + 1]].append((node, count))
        room = {domain: sum(count for _, count in layout) for domain, layout in inner.items()}
        roomiest = sorted(inner, key=lambda domain: (-room[domain], inner[domain][0][0].position))
        missing = workers
        for index, domain in enumerate(roomiest):
            if room[domain] >= missing:
                holding = [other for other in roomiest[index:] if room[other] >= missing]
                tightest = min(holding, key=lambda other: (room[other], inner[other][0][0].position))
                yield from self._pack(inner[tightest], level + 1, missing)
                return
            yield from self._pack(inner[domain], level + 1, room[domain])
            missing -= room[domain]

    def _tight_first(self, inside: Layout, workers: int) -> Iterator[tuple[Node, int]]:
        missing = workers
        for node, count in sorted(inside, key=lambda pair: (pair[0].gpus, pair[0].position)):
            yield node, min(count, missing)
            missing -= min(count, missing)
            if not missing:
                return

    def _spread(self, inside: Layout, level: int, workers: int) -> Iterator[tuple[Node, int]]:
        if level == len(self.levels) - 1:
            yield inside[0][0], workers
            return
        inner: dict[int, Layout] = defaultdict(list)
        for node, count in inside:
            inner[node.domains[level + 1]].append((node, count))
        room = {domain: sum(count for _, count in layout) for domain, layout in inner.items()}
        shares = dict.fromkeys(inner, 0)
        roomiest = sorted(inner, key=lambda domain: (-room[domain], inner[domain][0][0].position))
        missing = workers
        while missing:
            for domain in [domain for domain in roomiest if room[domain] > shares[domain]][:missing]:
                shares[domain] += 1
                missing -= 1
        for domain, share in shares.items():
            if share:
                yield from self._spread(inner[domain], level + 1, share)

    def _admit(self, workload: Workload, flavor: int, workers: int, layout: Layout) -> Admission:
        layout.sort(key=lambda pair: pair[0].position)
        for node, count in layout:
            node.gpus -= count * workload.gpus_per_worker
            node.cpu -= count * workload.cpu_milli
            node.memory -= count * workload.memory_mib
            node.pods -= count
        self._charge(workload.queue, flavor, workers * workload.gpus_per_worker)
        hosts = tuple(node.host for node, count in layout for _ in range(count))
        first = layout[0][0].domains
        level = max(
            level for level in range(len(self.levels)) if all(node.domains[level] == first[level] for node, _ in layout)
        )
        return Admission(workload.id, workers, Placement(flavor, first[0], self.levels[level], hosts))

    def _charge(self, node: int, flavor: int, gpus: int) -> None:
        while node >= 0:
            self.used[node][flavor] += gpus
            node = self.parent[node]


def _nodes(snapshot: Snapshot) -> list[list[Node]]:
    """Return the nodes per flavor, sorted by cluster name and then domain by domain, by smallest host id."""
    hosts, offers = snapshot.hosts, snapshot.offers
    first: dict[int, str] = {}
    domains = hosts.domains.tolist()
    for name, row in zip(hosts.ids, domains, strict=True):
        for domain in row:
            first[domain] = min(first.get(domain, name), name)
    clusters = hosts.cluster.tolist()
    order = sorted(
        range(len(hosts.ids)),
        key=lambda host: (snapshot.clusters[clusters[host]], *(first[domain] for domain in domains[host])),
    )
    position = {host: place for place, host in enumerate(order)}
    nodes: list[list[Node]] = [[] for _ in snapshot.flavors]
    rows = zip(offers.host.tolist(), offers.flavor.tolist(), offers.free.tolist(), strict=True)
    for host, flavor, free in sorted(rows, key=lambda row: position[row[0]]):
        amounts = (int(column[host]) for column in (hosts.cpu_milli, hosts.memory_mib, hosts.pods))
        nodes[flavor].append(Node(host, position[host], (clusters[host], *domains[host]), free, *amounts))
    return nodes
