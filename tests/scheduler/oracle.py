"""A second, slow scheduler for tiny worlds: tries every multiset of hosts, one plain dictionary per host.

It shares no code with the core, so that it can disagree with it.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement

from jobs.scheduler.types import CLUSTER, UNLIMITED, Admission, Hold, Snapshot, TopologyMode, Workload


class Plain:
    """A snapshot as dictionaries: free[host][resource], room[quota node][flavor]."""

    def __init__(self, snapshot: Snapshot, *, empty: bool = False) -> None:
        self.snapshot = snapshot
        self.empty = empty
        hosts, offers = snapshot.hosts, snapshot.offers
        columns = (
            (hosts.cpu_milli_total, hosts.memory_mib_total, hosts.pods_total)
            if empty
            else (hosts.cpu_milli, hosts.memory_mib, hosts.pods)
        )
        self.free: list[Counter[str]] = [
            Counter(cpu=int(columns[0][host]), memory=int(columns[1][host]), pods=int(columns[2][host]))
            for host in range(len(hosts.ids))
        ]
        self.offered = [set[int]() for _ in hosts.ids]
        for host, flavor, free, total in zip(offers.host, offers.flavor, offers.free, offers.total, strict=True):
            self.free[host][f"gpu{flavor}"] += int(total if empty else free)
            if total > 0:
                self.offered[host].add(int(flavor))
        self.used = Counter[tuple[int, int]]()
        if not empty:
            for node in range(len(snapshot.quota.ids)):
                for flavor in range(len(snapshot.flavors)):
                    self.charge(node, flavor, int(snapshot.quota.used[node, flavor]))

    def chain(self, node: int) -> Iterator[int]:
        """Yield a quota node and all nodes above it."""
        while node >= 0:
            yield node
            node = int(self.snapshot.quota.parent[node])

    def charge(self, node: int, flavor: int, gpus: int) -> None:
        """Book GPUs up the tree."""
        for each in self.chain(node):
            self.used[each, flavor] += gpus

    def quota_holds(self, workload: Workload, flavor: int, workers: int) -> bool:
        """Return whether every node of the chain has room for these workers."""
        asked = workers * workload.gpus_per_worker
        return all(
            nominal == UNLIMITED or self.used[node, flavor] + asked <= nominal
            for node in self.chain(workload.queue)
            if asked
            for nominal in [int(self.snapshot.quota.nominal[node, flavor])]
        )

    def may_use(self, workload: Workload, flavor: int, host: int) -> bool:
        """Return whether hold, taint, cluster, exclusion and flavor allow the host."""
        hosts = self.snapshot.hosts
        allowed = not workload.clusters or int(hosts.cluster[host]) in workload.clusters
        taint = int(hosts.taints[host])
        is_open = self.empty or (int(hosts.hold[host]) == Hold.NONE and (taint == 0 or taint in workload.tolerated))
        return allowed and is_open and host not in workload.excluded_hosts and flavor in self.offered[host]

    def holds(self, workload: Workload, flavor: int, layout: tuple[int, ...]) -> bool:
        """Return whether every host of a layout (one entry per worker) has the amounts for its workers."""
        return all(
            self.free[host]["pods"] >= count
            and (not workload.cpu_milli or self.free[host]["cpu"] >= count * workload.cpu_milli)
            and (not workload.memory_mib or self.free[host]["memory"] >= count * workload.memory_mib)
            and (not workload.gpus_per_worker or self.free[host][f"gpu{flavor}"] >= count * workload.gpus_per_worker)
            for host, count in Counter(layout).items()
        )

    def common_level(self, layout: tuple[int, ...]) -> str | None:
        """Return the lowest level that all hosts of a layout share, None over two clusters."""
        hosts = self.snapshot.hosts
        if len({int(hosts.cluster[host]) for host in layout}) > 1:
            return None
        for column in range(len(self.snapshot.levels) - 1, -1, -1):
            domains = {int(hosts.domains[host, column]) for host in layout}
            if len(domains) == 1 and domains != {-1}:
                return self.snapshot.levels[column]
        return CLUSTER

    def layouts(self, workload: Workload, flavor: int, workers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield (level, layout) for every way to place these workers now."""
        usable = [host for host in range(len(self.free)) if self.may_use(workload, flavor, host)]
        for layout in combinations_with_replacement(usable, workers):
            level = self.common_level(layout)
            if level and self._narrow_enough(workload, layout) and self.holds(workload, flavor, layout):
                yield level, layout

    def most_workers(self, workload: Workload, flavor: int) -> int:
        """Return the largest number of workers that quota and place allow, 0 if fewer than the least."""
        for workers in range(workload.workers, workload.min_workers - 1, -1):
            if self.quota_holds(workload, flavor, workers) and any(self.layouts(workload, flavor, workers)):
                return workers
        return 0

    def book(self, workload: Workload, admission: Admission) -> None:
        """Take what an admission takes."""
        flavor = admission.placement.flavor
        for host in admission.placement.hosts:
            self.free[host][f"gpu{flavor}"] -= workload.gpus_per_worker
            self.free[host]["cpu"] -= workload.cpu_milli
            self.free[host]["memory"] -= workload.memory_mib
            self.free[host]["pods"] -= 1
        self.charge(workload.queue, flavor, admission.workers * workload.gpus_per_worker)

    def _narrow_enough(self, workload: Workload, layout: tuple[int, ...]) -> bool:
        if workload.topology is not TopologyMode.REQUIRE or workload.level == CLUSTER:
            return True
        column = self.snapshot.levels.index(workload.level)
        domains = {int(self.snapshot.hosts.domains[host, column]) for host in layout}
        return len(domains) == 1 and domains != {-1}
