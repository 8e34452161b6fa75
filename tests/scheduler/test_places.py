"""Where gangs land in literal worlds; the BC numbers are the bug cases that each world re-creates."""

import pytest

from jobs.scheduler.decide import can_ever_fit, decide
from jobs.scheduler.types import Hold, NeverLimit, Outcome, Reason, ReasonCode, Snapshot, SpreadPolicy, TopologyMode
from tests.worlds import JobIn, NodeIn, job, node, placed, queue, reason_of, world


def run(nodes: list[NodeIn], *jobs: JobIn) -> dict[str, list[str]]:
    snapshot = world(nodes=nodes, jobs=jobs)
    return placed(decide(snapshot), snapshot)


def racks(**free_per_rack: list[int]) -> list[NodeIn]:
    """Write nodes r1-0, r1-1 ... with so many free GPUs of 8, all in one block."""
    return [
        node(f"{rack}-{number}", rack=rack, block="b1", free=free)
        for rack, frees in free_per_rack.items()
        for number, free in enumerate(frees)
    ]


def test_two_gangs_that_fit_only_one_at_a_time_never_hold_halves() -> None:  # BC-01
    snapshot = world(nodes=[node(f"n{number}") for number in range(4)], jobs=[job("b", workers=4), job("a", workers=4)])
    outcome = decide(snapshot)

    assert placed(outcome, snapshot) == {"a": ["n0", "n1", "n2", "n3"]}
    assert reason_of(outcome, "b").code is ReasonCode.TURN


@pytest.mark.parametrize(
    ("third", "tolerated", "starts"),
    [
        (node("n3", taint=1), frozenset[int](), False),
        (node("n3", taint=1), frozenset({1}), True),
        (node("n3", hold=Hold.CORDONED), frozenset({1}), False),
    ],
    ids=["tainted", "tolerated", "cordoned"],
)
def test_closed_nodes_are_no_part_of_a_plan(third: NodeIn, tolerated: frozenset[int], *, starts: bool) -> None:  # BC-23
    snapshot = world(nodes=[node("n1"), node("n2"), third], jobs=[job("j", workers=3, tolerated=tolerated)])
    outcome = decide(snapshot)

    assert bool(outcome.admissions) == starts
    if not starts:
        numbers = reason_of(outcome, "j").numbers
        assert (numbers["usable"], numbers["total"]) == (16, 24)


def test_pod_slots_are_part_of_the_plan() -> None:  # BC-25
    nodes = [node("n1", pods=10, pods_free=1), node("n2", gpus=8, free=2)]

    assert run(nodes, job("j", workers=2, gpus=1)) == {"j": ["n2", "n2"]}
    assert run([nodes[0], node("n2", free=1)], job("j", workers=2, gpus=1)) == {"j": ["n1", "n2"]}


def test_what_one_flavor_took_of_a_host_is_gone_for_pods_without_gpus() -> None:
    nodes = [node("n1", pods=10, pods_free=1)]

    assert run(nodes, job("a", gpus=1), job("b", gpus=0, flavors=())) == {"a": ["n1"]}


def test_a_partition_is_chosen_by_what_it_holds_not_by_how_full_it_is() -> None:  # BC-27
    gang = job("j", workers=2, mode=TopologyMode.REQUIRE, level="rack")

    assert run(racks(p1=[0, 0, 0, 8], p2=[8, 8, 8, 8]), gang) == {"j": ["p2-0", "p2-1"]}
    reason = reason_of(decide(world(nodes=racks(p1=[0, 0, 0, 8], p2=[0, 0, 0, 8]), jobs=[gang])), "j")
    assert reason.code is ReasonCode.FRAGMENTATION
    assert (reason.numbers["fits"], reason.numbers["workers"], reason.numbers["free_nodes"]) == (1, 2, 1)


def test_only_healthy_gpus_count() -> None:  # BC-29: 8 built in, 7 allocatable; a failed GPU leaves 1 - 1 = 0
    nodes = [node("u1", gpus=7), node("u2", gpus=1, free=0)]
    outcome = decide(world(nodes=nodes, jobs=[job("j", gpus=8), job("k", gpus=1, excluded=("u1",))]))

    assert outcome.admissions == ()
    assert reason_of(outcome, "j").numbers == {
        "limit": NeverLimit.GPUS_PER_NODE.value,
        "most": 7,
        "asked": 8,
        "flavor": "A100",
        "where": "cluster",
    }


def test_nodes_without_a_label_are_left_out_only_where_that_level_is_required() -> None:  # BC-31
    nodes = [node("n1", rack="r1"), node("n2")]

    assert run(nodes, job("j", workers=2)) == {"j": ["n1", "n2"]}
    assert run(nodes, job("j", workers=2, mode=TopologyMode.REQUIRE, level="rack")) == {}
    assert run([node("n1", free=0, rack="r1"), node("n2")], job("j", mode=TopologyMode.REQUIRE, level="rack")) == {}


def test_a_job_that_waits_for_one_flavor_does_not_stop_another() -> None:  # BC-33, best effort order
    nodes = [node("h", gpus={"H100": 8}, free={"H100": 4}), node("c", gpus=0)]
    first = job("h1", flavors=("H100",), order=1)
    cpu_only = job("c1", gpus=0, flavors=(), cpu=4_000, order=2)

    assert set(run(nodes, first, cpu_only, job("h2", gpus=1, flavors=("H100",), order=3))) == {"c1", "h2"}


def test_a_long_queue_before_a_full_pool_does_not_hide_an_idle_pool() -> None:  # BC-35
    nodes = [node("p1", gpus={"A100": 20}, free={"A100": 1}), node("p2", gpus={"V100": 20})]
    full = [job(f"a{number:04d}", gpus=1, priority=2) for number in range(300)]
    idle = [job(f"v{number:04d}", gpus=1, priority=1, flavors=("V100",)) for number in range(100)]

    names = sorted(run(nodes, *full, *idle))
    assert names == ["a0000", *(f"v{number:04d}" for number in range(20))]


def test_a_gang_takes_the_lowest_level_and_there_the_tightest_domain() -> None:
    nodes = racks(r1=[8, 8, 8, 8], r2=[8, 8, 0, 0], r3=[8, 8, 8, 0])

    assert run(nodes, job("j", workers=2)) == {"j": ["r2-0", "r2-1"]}
    assert run(nodes, job("j", workers=3)) == {"j": ["r3-0", "r3-1", "r3-2"]}
    assert run(nodes, job("j", workers=2, gpus=4)) == {"j": ["r2-0", "r2-0"]}


def test_a_gang_over_racks_uses_as_few_as_it_can() -> None:
    nodes = racks(r1=[8, 0], r2=[8, 8, 8], r3=[8, 8])

    assert run(nodes, job("j", workers=4)) == {"j": ["r1-0", "r2-0", "r2-1", "r2-2"]}


def test_small_workers_fill_part_used_nodes_and_leave_whole_ones_whole() -> None:
    nodes = racks(r1=[8, 3, 2])

    assert run(nodes, job("j", workers=5, gpus=1, mode=TopologyMode.NONE)) == {
        "j": ["r1-1", "r1-1", "r1-1", "r1-2", "r1-2"]
    }
    assert run(nodes, job("j", gpus=2)) == {"j": ["r1-2"]}


def test_a_lone_worker_breaks_into_the_tightest_rack() -> None:
    assert run(racks(r1=[8, 8], r2=[8, 0]), job("j")) == {"j": ["r2-0"]}


def test_a_service_spreads_over_racks_and_then_over_nodes() -> None:
    nodes = racks(r1=[8, 8], r2=[8, 8], r3=[8, 8])
    hosts = run(nodes, job("s", workers=4, gpus=1, service=True, mode=TopologyMode.NONE))["s"]

    assert len(set(hosts)) == 4
    assert sorted(host[:2] for host in hosts) == ["r1", "r1", "r2", "r3"]


def test_a_gang_may_be_asked_to_spread_inside_the_level_it_names() -> None:
    gang = job("j", workers=2, gpus=1, spread=SpreadPolicy.SPREAD, level="rack")

    assert run(racks(r1=[8, 8], r2=[4, 4]), gang) == {"j": ["r2-0", "r2-1"]}


def test_an_elastic_gang_starts_with_as_many_workers_as_fit() -> None:
    snapshot = world(nodes=racks(r1=[8, 8, 8]), jobs=[job("j", workers=5, least=2)])

    assert [admission.workers for admission in decide(snapshot).admissions] == [3]


def test_workers_never_straddle_two_clusters() -> None:
    nodes = [node("n1", cluster="east"), node("n2", cluster="west")]
    outcome = decide(world(nodes=nodes, jobs=[job("j", workers=2)]))

    assert reason_of(outcome, "j").numbers["limit"] == NeverLimit.WORKERS.value


def test_equal_clusters_are_told_apart_by_name_and_the_tighter_one_wins() -> None:
    equal = [node("n1", cluster="west"), node("n2", cluster="east")]
    tighter = [node("n1", cluster="west"), node("n2", cluster="east"), node("n3", cluster="east")]

    assert run(equal, job("j")) == {"j": ["n2"]}
    assert run(tighter, job("j", mode=TopologyMode.NONE)) == {"j": ["n1"]}


def test_a_worse_flavor_now_beats_waiting_for_a_better_one() -> None:
    nodes = [node("a", free=0), node("v", gpus={"V100": 8})]

    assert run(nodes, job("j", flavors=("A100", "V100"))) == {"j": ["v"]}


def test_priority_then_time_then_identifier_decide_who_goes_first() -> None:
    late = job("a", priority=10, order=9)
    early, twin = job("c", order=1), job("b", order=1)
    outcome = decide(world(nodes=[node("n1", free=0)], jobs=[early, late, twin]))

    assert [wait.workload for wait in outcome.waits] == ["a", "b", "c"]


def test_a_cap_of_the_cohort_binds_though_the_queue_has_room() -> None:
    queues = [queue("all", default=12), queue("q", parent="all", default=99), queue("p", parent="all", default=99)]
    snapshot = world(nodes=[node("n1"), node("n2")], queues=queues, jobs=[job("a", queue="p"), job("b", order=1)])

    assert set(placed(decide(snapshot), snapshot)) == {"a"}


def test_a_blocked_job_waits_though_all_is_free() -> None:
    paused = Reason(ReasonCode.BLOCKED, {"cause": "queue_paused", "queue": "q"})
    outcome: Outcome = decide(world(nodes=[node("n1")], jobs=[job("j", blocked=paused)]))

    assert outcome.waits[0].reason.numbers == {"cause": "queue_paused", "queue": "q", "position": 1, "gpus_ahead": 0}


def test_a_circle_in_the_quota_tree_is_refused() -> None:
    queues = [queue("q", parent="p"), queue("p", parent="q")]

    with pytest.raises(ValueError, match="circle"):
        decide(world(nodes=[node("n1")], queues=queues))


def test_preview_says_whether_a_job_can_ever_fit() -> None:
    snapshot: Snapshot = world(nodes=[node("n1", free=0, hold=Hold.CORDONED)], jobs=[job("ok"), job("big", gpus=9)])
    ok, big = snapshot.workloads

    assert can_ever_fit(snapshot, ok) is None
    reason = can_ever_fit(snapshot, big)
    assert reason is not None
    assert reason.code is ReasonCode.NEVER_FITS
