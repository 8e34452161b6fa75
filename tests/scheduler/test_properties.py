"""What must hold in every world, checked against the slow scheduler in oracle.py."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.scheduler.decide import can_ever_fit, decide
from jobs.scheduler.types import (
    CLUSTER,
    Hosts,
    Offers,
    Outcome,
    QuotaTree,
    ReasonCode,
    Snapshot,
    SpreadPolicy,
    TopologyMode,
    Workload,
)
from tests.scheduler.oracle import Plain
from tests.scheduler.strategies import worlds

few = settings(max_examples=80, deadline=None)


def by_id(snapshot: Snapshot) -> dict[str, Workload]:
    return {workload.id: workload for workload in snapshot.workloads}


@few
@given(worlds())
def test_no_host_and_no_quota_node_is_ever_overcommitted(snapshot: Snapshot) -> None:
    books, jobs = Plain(snapshot), by_id(snapshot)
    for admission in decide(snapshot).admissions:
        workload, placement = jobs[admission.workload], admission.placement

        assert books.quota_holds(workload, placement.flavor, admission.workers)
        assert books.holds(workload, placement.flavor, placement.hosts)
        assert all(books.may_use(workload, placement.flavor, host) for host in placement.hosts)
        books.book(workload, admission)


@few
@given(worlds())
def test_a_gang_starts_whole_in_one_cluster_and_inside_the_level_that_is_named(snapshot: Snapshot) -> None:
    jobs = by_id(snapshot)
    for admission in decide(snapshot).admissions:
        workload, placement = jobs[admission.workload], admission.placement

        assert workload.min_workers <= admission.workers <= workload.workers
        assert len(placement.hosts) == admission.workers
        assert {int(snapshot.hosts.cluster[host]) for host in placement.hosts} == {placement.cluster}
        assert Plain(snapshot).common_level(placement.hosts) == placement.level
        if workload.topology is TopologyMode.REQUIRE:
            order = [CLUSTER, *snapshot.levels]
            assert order.index(placement.level) >= order.index(workload.level)


@few
@given(worlds())
def test_each_workload_in_turn_gets_its_best_flavor_and_as_many_workers_as_fit(snapshot: Snapshot) -> None:
    books, outcome = Plain(snapshot), decide(snapshot)
    admissions = {admission.workload: admission for admission in outcome.admissions}
    for workload in sorted(snapshot.workloads, key=lambda one: (-one.priority, one.submitted_at, one.id)):
        options = {flavor: books.most_workers(workload, flavor) for flavor in workload.flavors}
        first = next((flavor for flavor, most in options.items() if most), None)
        admission = admissions.get(workload.id)

        assert (admission.placement.flavor if admission else None) == first
        if admission and first is not None:
            assert admission.workers == options[first]
            books.book(workload, admission)


@few
@given(worlds())
def test_a_packed_gang_stands_on_the_lowest_level_that_holds_it(snapshot: Snapshot) -> None:
    books, jobs = Plain(snapshot), by_id(snapshot)
    order = [CLUSTER, *snapshot.levels]
    for admission in decide(snapshot).admissions:
        workload, placement = jobs[admission.workload], admission.placement
        levels = [level for level, _ in books.layouts(workload, placement.flavor, admission.workers)]
        lowest = max(levels, key=order.index)
        packs = workload.spread is SpreadPolicy.PACK and workload.topology is not TopologyMode.NONE

        assert not packs or placement.level == lowest
        books.book(workload, admission)


@few
@given(worlds())
def test_what_waits_has_no_place_left_after_the_cycle(snapshot: Snapshot) -> None:
    books, jobs, outcome = Plain(snapshot), by_id(snapshot), decide(snapshot)
    for admission in outcome.admissions:
        books.book(jobs[admission.workload], admission)
    for wait in outcome.waits:
        workload = jobs[wait.workload]
        assert not any(books.most_workers(workload, flavor) for flavor in workload.flavors)


@few
@given(worlds())
def test_the_first_four_reasons_agree_with_brute_force(snapshot: Snapshot) -> None:
    start, empty, jobs = Plain(snapshot), Plain(snapshot, empty=True), by_id(snapshot)
    for wait in decide(snapshot).waits:
        workload = jobs[wait.workload]
        offered = any(
            flavor in empty.offered[host]
            and (not workload.clusters or snapshot.hosts.cluster[host] in workload.clusters)
            for flavor in workload.flavors
            for host in range(len(snapshot.hosts.ids))
            if host not in workload.excluded_hosts
        )
        ever = any(empty.most_workers(workload, flavor) for flavor in workload.flavors)
        fitted = any(start.most_workers(workload, flavor) for flavor in workload.flavors)

        assert (wait.reason.code is ReasonCode.ACCELERATOR) == (not offered)
        assert (wait.reason.code is ReasonCode.NEVER_FITS) == (offered and not ever)
        assert (wait.reason.code is ReasonCode.TURN) == fitted


@few
@given(worlds(max_jobs=1))
def test_can_ever_fit_agrees_with_brute_force_on_empty_hosts(snapshot: Snapshot) -> None:
    workload, empty = snapshot.workloads[0], Plain(snapshot, empty=True)
    possible = any(empty.most_workers(workload, flavor) for flavor in workload.flavors)

    assert (can_ever_fit(snapshot, workload) is None) == possible


@few
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(snapshot: Snapshot, random: Random) -> None:
    hosts = list(range(len(snapshot.hosts.ids)))
    random.shuffle(hosts)
    workloads = list(snapshot.workloads)
    random.shuffle(workloads)
    shuffled = _reordered(snapshot, hosts, workloads)

    assert _named(decide(shuffled), shuffled) == _named(decide(snapshot), snapshot)


@few
@given(worlds(max_jobs=1), st.integers(0, 4), st.integers(1, 3))
def test_more_free_gpus_never_turn_a_start_into_a_wait(snapshot: Snapshot, at: int, more: int) -> None:
    free = snapshot.offers.free.copy()
    if not len(free):
        return
    free[at % len(free)] += more
    richer = replace(snapshot, offers=replace(snapshot.offers, free=free))

    assert len(decide(richer).admissions) >= len(decide(snapshot).admissions)


@few
@given(worlds(max_jobs=1))
def test_a_spread_service_is_even_over_the_hosts_of_a_flat_cluster(snapshot: Snapshot) -> None:
    flat = replace(snapshot, hosts=replace(snapshot.hosts, domains=np.full_like(snapshot.hosts.domains, -1)))
    workload = replace(flat.workloads[0], topology=TopologyMode.NONE, spread=SpreadPolicy.SPREAD)
    flat, books = replace(flat, workloads=(workload,)), Plain(flat)
    for admission in decide(flat).admissions:
        placement = admission.placement
        counts = Counter(placement.hosts)
        for host in range(len(flat.hosts.ids)):
            one_more = (host,) * (counts[host] + 1)
            free = flat.hosts.cluster[host] == placement.cluster and books.may_use(workload, placement.flavor, host)
            if free and books.holds(workload, placement.flavor, one_more):
                assert max(counts.values()) - counts[host] <= 1


def _reordered(snapshot: Snapshot, hosts: list[int], workloads: list[Workload]) -> Snapshot:
    """Put the hosts in another order, the offers, queues, clusters and domain numbers in reverse."""
    new_host = {old: new for new, old in enumerate(hosts)}
    queues = list(reversed(range(len(snapshot.quota.ids))))
    clusters = list(reversed(range(len(snapshot.clusters))))
    old, offers, quota = snapshot.hosts, snapshot.offers, snapshot.quota
    columns = {
        name: getattr(old, name)[hosts]
        for name in Hosts.__dataclass_fields__
        if name not in ("ids", "cluster", "domains")
    }
    top = int(old.domains.max(initial=0))
    return replace(
        snapshot,
        clusters=tuple(snapshot.clusters[index] for index in clusters),
        hosts=Hosts(
            ids=tuple(old.ids[host] for host in hosts),
            cluster=np.array([clusters.index(int(old.cluster[host])) for host in hosts]),
            domains=np.where(old.domains < 0, old.domains, top - old.domains)[hosts],
            **columns,
        ),
        offers=Offers(
            host=np.array([new_host[int(host)] for host in offers.host[::-1]], dtype=np.int64),
            flavor=offers.flavor[::-1],
            free=offers.free[::-1],
            total=offers.total[::-1],
        ),
        quota=QuotaTree(
            ids=tuple(quota.ids[index] for index in queues),
            parent=np.array([queues.index(p) if (p := int(quota.parent[index])) >= 0 else -1 for index in queues]),
            nominal=quota.nominal[queues],
            used=quota.used[queues],
        ),
        workloads=tuple(
            replace(
                workload,
                queue=queues.index(workload.queue),
                clusters=tuple(clusters.index(index) for index in workload.clusters),
                excluded_hosts=tuple(new_host[host] for host in workload.excluded_hosts),
            )
            for workload in workloads
        ),
    )


def _named(outcome: Outcome, snapshot: Snapshot) -> tuple[object, ...]:
    """Return an outcome with names instead of indices."""
    admissions = [
        (
            one.workload,
            one.workers,
            one.placement.flavor,
            one.placement.level,
            snapshot.clusters[one.placement.cluster],
            [snapshot.hosts.ids[host] for host in one.placement.hosts],
        )
        for one in outcome.admissions
    ]
    return admissions, outcome.waits
