"""Each reason code in two worlds that differ in one number; the sentence changes with it."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from jobs.explain.reasons import explain
from jobs.scheduler.decide import decide
from jobs.scheduler.types import Hold, Reason, ReasonCode, Snapshot, SpreadPolicy, TopologyMode
from tests.worlds import NodeIn, QueueIn, job, node, queue, reason_of, world

GIB = 1024
in_one_rack = partial(job, mode=TopologyMode.REQUIRE, level="rack")
PAUSED = Reason(ReasonCode.BLOCKED, {"cause": "queue_paused", "queue": "q"})


def blocked(ahead: int) -> Snapshot:
    jobs = [job(f"a{number}", order=number, blocked=PAUSED) for number in range(ahead)]
    return world(nodes=[node("n1")], jobs=[*jobs, job("j", order=99, blocked=PAUSED)])


def accelerator(nodes: int) -> Snapshot:
    return world(nodes=[node(f"n{number}") for number in range(nodes)], jobs=[job("j", flavors=("H100",))])


def never_gpus(gpus: int) -> Snapshot:
    return world(nodes=[node("n1", gpus=4)], jobs=[job("j", gpus=gpus)])


def never_quota(nominal: int) -> Snapshot:
    nodes = [node(f"n{number}") for number in range(4)]
    return world(nodes=nodes, jobs=[job("j", workers=4)], queues=queues(nominal=100, parent_nominal=nominal))


def never_cpu(cores: int) -> Snapshot:
    return world(nodes=[node("n1", cpu=cores * 1000)], jobs=[job("j", cpu=200_000)])


def never_memory(gib: int) -> Snapshot:
    return world(nodes=[node("n1", memory=gib * GIB)], jobs=[job("j", memory=900 * GIB)])


def never_pods(nodes: int) -> Snapshot:
    full = [node(f"n{number}", gpus=8, pods=0) for number in range(nodes)]
    return world(nodes=full, jobs=[job("j")])


def never_workers(workers: int) -> Snapshot:
    racks = [node(f"n{number}", rack=f"r{number // 2}") for number in range(6)]
    return world(nodes=racks, jobs=[in_one_rack("j", workers=workers)])


def never_level(workers: int) -> Snapshot:
    return world(nodes=[node("n1")], jobs=[job("j", workers=workers, mode=TopologyMode.REQUIRE, level="row")])


def turn(gpus_of_first: int) -> Snapshot:
    return world(nodes=[node("n1")], jobs=[job("a", gpus=gpus_of_first), job("j", order=1)])


def quota_of_queue(used: int) -> Snapshot:
    nodes = [node(f"n{number}") for number in range(4)]
    return world(nodes=nodes, jobs=[job("j", workers=2)], queues=queues(nominal=20, used=used, parent_nominal=100))


def quota_of_cohort(nominal: int) -> Snapshot:
    nodes = [node(f"n{number}") for number in range(4)]
    return world(nodes=nodes, jobs=[job("j", workers=2)], queues=queues(nominal=90, used=8, parent_nominal=nominal))


def cpu(free_cores: int) -> Snapshot:
    return world(nodes=[node("n1", cpu_free=free_cores * 1000)], jobs=[job("j", cpu=32_000)])


def memory(free_gib: int) -> Snapshot:
    return world(nodes=[node("n1", memory_free=free_gib * GIB)], jobs=[job("j", memory=500 * GIB)])


def pods(nodes: int) -> Snapshot:
    return world(nodes=[node(f"n{number}", pods_free=0) for number in range(nodes)], jobs=[job("j")])


def cordoned(nodes: int) -> Snapshot:
    usable = [node(f"n{number}", free=0) for number in range(nodes)]
    return world(nodes=[*usable, node("closed", hold=Hold.CORDONED)], jobs=[job("j")])


def tainted(gpus: int) -> Snapshot:
    return world(nodes=[node("n1"), node("n2"), node("n3", taint=1, gpus=gpus)], jobs=[job("j", workers=3)])


def not_ready(nodes: int) -> Snapshot:
    broken = [node(f"n{number}", hold=Hold.NOT_READY) for number in range(nodes)]
    return world(nodes=broken, jobs=[job("j")])


def cluster_stale(free: int) -> Snapshot:
    stale = node("n2", cluster="west", free=free, hold=Hold.STALE)
    return world(nodes=[node("n1", cluster="east", free=0), stale], jobs=[job("j", gpus=4)])


def cluster_too_old(free: int) -> Snapshot:
    old = node("n2", cluster="west", free=free, hold=Hold.TOO_OLD)
    return world(nodes=[node("n1", cluster="east", free=0), old], jobs=[job("j", gpus=4)])


def capacity(free: int) -> Snapshot:
    return world(nodes=[node("n1", free=free), node("n2", free=0)], jobs=[job("j")])


def fragmentation(free_nodes: int) -> Snapshot:
    one = [node(f"a{number}", rack="r1", free=8 if number < free_nodes else 0) for number in range(4)]
    other = [node(f"b{number}", rack="r2", free=8 if number < 2 else 0) for number in range(4)]
    return world(nodes=one + other, jobs=[in_one_rack("j", workers=4)])


def queues(*, nominal: int, parent_nominal: int, used: int = 0) -> Sequence[QueueIn]:
    return [
        queue("research", default=parent_nominal),
        queue("q", parent="research", default=nominal, used={"A100": used}),
    ]


CASES: list[tuple[ReasonCode, Callable[[int], Snapshot], tuple[int, int], str]] = [
    (ReasonCode.BLOCKED, blocked, (1, 2), "The queue q is paused; this job is number 2 in it."),
    (ReasonCode.ACCELERATOR, accelerator, (3, 4), "None of the 3 nodes in the allowed clusters offers H100."),
    (
        ReasonCode.NEVER_FITS,
        never_gpus,
        (8, 5),
        "8 GPUs per worker; A100 nodes in the allowed clusters offer at most 4.",
    ),
    (ReasonCode.NEVER_FITS, never_quota, (31, 30), "It needs at least 32 A100 GPUs; research may hold at most 31."),
    (
        ReasonCode.NEVER_FITS,
        never_cpu,
        (128, 64),
        "200 cores per worker; the nodes that could take it have at most 128 cores.",
    ),
    (
        ReasonCode.NEVER_FITS,
        never_memory,
        (512, 256),
        "900 GiB per worker; the nodes that could take it have at most 512 GiB.",
    ),
    (
        ReasonCode.NEVER_FITS,
        never_workers,
        (3, 4),
        "At least 3 workers must fit in one rack; the largest holds 2 even when it is empty.",
    ),
    (
        ReasonCode.NEVER_FITS,
        never_level,
        (1, 2),
        "No cluster has the topology level row that the job requires (workers: 1).",
    ),
    (
        ReasonCode.TURN,
        turn,
        (8, 4),
        (
            "It would have fitted, but 1 job ahead of it just took 8 GPUs. "
            "It is number 1 in its queue (0 GPUs asked before it)."
        ),
    ),
    (
        ReasonCode.QUOTA,
        quota_of_queue,
        (12, 8),
        "The quota of q is short: 12 of 20 A100 GPUs are used and it needs 16.",
    ),
    (
        ReasonCode.QUOTA,
        quota_of_cohort,
        (16, 20),
        "The quota of research is short: 8 of 16 A100 GPUs are used and it needs 16.",
    ),
    (
        ReasonCode.CPU,
        cpu,
        (31, 16),
        (
            "Short of CPU on 1 node that could take it otherwise: a worker needs 32 cores "
            "and that node has 31 cores free, so 0 of 1 workers fit."
        ),
    ),
    (
        ReasonCode.MEMORY,
        memory,
        (499, 100),
        (
            "Short of memory on 1 node that could take it otherwise: a worker needs 500 GiB "
            "and that node has 499 GiB free, so 0 of 1 workers fit."
        ),
    ),
    (
        ReasonCode.PODS,
        pods,
        (2, 3),
        (
            "Short of pod slots on 2 nodes that could take it otherwise: a worker needs 1 "
            "and the best of them has 0 free, so 0 of 1 workers fit."
        ),
    ),
    (
        ReasonCode.CORDONED,
        cordoned,
        (2, 3),
        "It would fit if 1 cordoned or tainted node were open: 16 of 24 A100 GPUs are usable and it needs 8.",
    ),
    (
        ReasonCode.CORDONED,
        tainted,
        (8, 16),
        "It would fit if 1 cordoned or tainted node were open: 16 of 24 A100 GPUs are usable and it needs 24.",
    ),
    (
        ReasonCode.NOT_READY,
        not_ready,
        (1, 2),
        "It would fit if 1 more node were ready: 0 of 8 A100 GPUs are usable and it needs 8.",
    ),
    (
        ReasonCode.CLUSTER_STALE,
        cluster_stale,
        (4, 6),
        (
            "It would fit on the cluster west (4 A100 GPUs free, it needs 4), "
            "but nothing is heard of that cluster at the moment."
        ),
    ),
    (
        ReasonCode.CLUSTER_TOO_OLD,
        cluster_too_old,
        (4, 6),
        (
            "It would fit on the cluster west (4 A100 GPUs free, it needs 4), "
            "but the Kubernetes of that cluster is too old: nothing is placed there."
        ),
    ),
    (ReasonCode.CAPACITY, capacity, (7, 1), "7 A100 GPUs are free and it needs 8."),
    (
        ReasonCode.FRAGMENTATION,
        fragmentation,
        (3, 2),
        (
            "40 A100 GPUs are free, but not in one place: 4 workers must fit in one rack, "
            "the best one has room for 3, on 3 nodes."
        ),
    ),
]


@pytest.mark.parametrize(("code", "build", "numbers", "sentence"), CASES, ids=[case[1].__name__ for case in CASES])
def test_a_reason_names_the_obstacle_and_its_sentence_follows_the_numbers(
    code: ReasonCode, build: Callable[[int], Snapshot], numbers: tuple[int, int], sentence: str
) -> None:
    reasons = [reason_of(decide(build(number)), "j") for number in numbers]

    assert [reason.code for reason in reasons] == [code, code]
    assert explain(reasons[0]) == sentence
    assert explain(reasons[1]) != sentence


def test_every_code_has_its_two_worlds() -> None:
    assert {case[0] for case in CASES} == set(ReasonCode)


def test_a_node_that_takes_no_pods_at_all_can_never_be_used() -> None:
    reason = reason_of(decide(never_pods(1)), "j")

    assert explain(reason) == "1 pod slot per worker; the nodes that could take it have at most 0."


def one(node_in: NodeIn, *, cpu: int = 0, memory: int = 0) -> ReasonCode:
    """Decide one 8-GPU job on one node beside a full one and return the code of its reason."""
    snapshot = world(nodes=[node_in, node("full", free=0)], jobs=[job("j", cpu=cpu, memory=memory)])
    return reason_of(decide(snapshot), "j").code


def test_what_the_user_can_change_is_named_before_what_the_administrator_can() -> None:
    nodes = [node("n1", cpu_free=1_000), node("n2", hold=Hold.CORDONED)]
    outcome = decide(world(nodes=nodes, jobs=[job("j", cpu=8_000)]))

    assert reason_of(outcome, "j").code is ReasonCode.CPU


def test_a_job_short_of_cpu_and_memory_is_told_of_the_last_that_must_give() -> None:
    assert one(node("n1", cpu_free=0, memory_free=0), cpu=1_000, memory=1) is ReasonCode.MEMORY


def test_closed_hosts_are_opened_one_kind_after_the_other() -> None:
    assert one(node("n1", hold=Hold.CORDONED)) is ReasonCode.CORDONED
    assert one(node("n1", hold=Hold.NOT_READY)) is ReasonCode.NOT_READY
    assert one(node("n1", hold=Hold.STALE)) is ReasonCode.CLUSTER_STALE
    assert one(node("n1", hold=Hold.TOO_OLD)) is ReasonCode.CLUSTER_TOO_OLD
    assert one(node("n1", hold=Hold.STALE, free=7)) is ReasonCode.CAPACITY


def test_quota_comes_before_any_shortage_of_room() -> None:
    snapshot = world(nodes=[node("n1", free=0)], jobs=[job("j")], queues=[queue("q", default=8, used={"A100": 1})])

    assert reason_of(decide(snapshot), "j").code is ReasonCode.QUOTA


def test_the_reason_speaks_of_the_first_flavor_that_could_ever_start_the_job() -> None:
    nodes = [node("n1", gpus={"A100": 4}), node("n2", gpus={"V100": 8}, free={"V100": 3})]
    reason = reason_of(decide(world(nodes=nodes, jobs=[job("j", flavors=("A100", "V100"))])), "j")

    assert reason == Reason(ReasonCode.CAPACITY, {"free": 3, "asked": 8, "flavor": "V100"})


def test_a_wait_counts_the_jobs_and_gpus_before_it_in_its_own_queue_only() -> None:
    queues_ = [queue("q", default=64), queue("other", default=64)]
    jobs = [job("a", order=1), job("b", queue="other", order=2), job("c", workers=2, order=3), job("d", order=4)]
    waits = decide(world(nodes=[node("n1", free=0), node("n2", free=0)], jobs=jobs, queues=queues_)).waits

    assert [(wait.workload, wait.position, wait.gpus_ahead) for wait in waits] == [
        ("a", 1, 0),
        ("b", 1, 0),
        ("c", 2, 8),
        ("d", 3, 24),
    ]


def test_a_job_that_can_never_start_has_no_position_and_is_before_nobody() -> None:
    jobs = [job("never", workers=100, order=1), job("unknown", flavors=("V100",), order=2), job("c", order=3)]
    nodes = [node("n1", free=0), node("n2", gpus={"V100": 0})]
    waits = decide(world(nodes=nodes, jobs=jobs, queues=[queue("q", default=64)])).waits

    assert [(wait.workload, wait.position, wait.gpus_ahead) for wait in waits] == [
        ("never", None, 0),
        ("unknown", None, 0),
        ("c", 1, 0),
    ]


def test_fragmentation_counts_what_fits_at_every_level() -> None:
    reason = reason_of(decide(fragmentation(3)), "j")

    assert {level: reason.numbers[f"fit_{level}"] for level in ("cluster", "rack", "node")} == {
        "cluster": 5,
        "rack": 3,
        "node": 1,
    }


def test_a_service_spread_by_hand_and_without_gpus_is_told_of_closed_nodes_in_words_only() -> None:
    jobs = [job("j", gpus=0, flavors=(), service=True, spread=SpreadPolicy.SPREAD)]
    closed = decide(world(nodes=[node("n1", hold=Hold.CORDONED)], jobs=jobs))
    stale = decide(world(nodes=[node("n1", hold=Hold.STALE)], jobs=jobs))

    assert explain(reason_of(closed, "j")) == "It would fit if 1 cordoned or tainted node were open."
    assert explain(reason_of(stale, "j")) == "It would fit on the cluster c1, but nothing is heard of it at the moment."


def test_no_nodes_at_all_is_said_plainly() -> None:
    assert explain(reason_of(decide(world(nodes=[], clusters=("c1",), jobs=[job("j")])), "j")) == (
        "The allowed clusters have no nodes."
    )


@pytest.mark.parametrize(
    ("milli", "words"), [(500, "0.5 cores"), (32_000, "32 cores"), (99_999_999_000, "99999999 cores")]
)
def test_cores_are_said_in_full(milli: int, words: str) -> None:
    numbers: dict[str, int | str] = {"limit": "cpu", "most": 0, "asked": milli, "flavor": "V100", "where": "node"}
    assert words in explain(Reason(ReasonCode.NEVER_FITS, numbers))
