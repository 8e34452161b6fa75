"""Tiny random worlds, dense in the cases that matter: part-used hosts, missing labels, holds, tight quota."""

from hypothesis import strategies as st

from jobs.scheduler.types import UNLIMITED, Hold, Snapshot, SpreadPolicy, TopologyMode
from tests.worlds import JobIn, NodeIn, QueueIn, job, node, queue, world

FLAVORS = ("A100", "V100")
LEVELS = ("block", "rack", "node")
PLACES = [(None, None), ("b1", "r1"), ("b1", "r2"), ("b2", "r1"), ("b2", None), (None, "r1")]


@st.composite
def nodes(draw: st.DrawFn, number: int) -> NodeIn:
    block, rack = draw(st.sampled_from(PLACES))
    gpus = draw(st.dictionaries(st.sampled_from(FLAVORS), st.integers(0, 4), max_size=2))
    return node(
        f"n{number}",
        cluster=draw(st.sampled_from(["c1", "c1", "c2"])),
        gpus=gpus,
        free={flavor: draw(st.integers(-1, total)) for flavor, total in gpus.items()},
        block=block,
        rack=rack,
        cpu=6,
        memory=6,
        pods=5,
        cpu_free=draw(st.integers(-1, 6)),
        memory_free=draw(st.integers(0, 6)),
        pods_free=draw(st.integers(0, 5)),
        hold=draw(st.sampled_from([Hold.NONE, Hold.NONE, Hold.NONE, *Hold])),
        taint=draw(st.sampled_from([0, 0, 0, 1])),
    )


@st.composite
def jobs(draw: st.DrawFn, number: int) -> JobIn:
    workers = draw(st.integers(1, 3))
    gpus = draw(st.integers(0, 3))
    return job(
        f"j{number}",
        queue=draw(st.sampled_from(["qa", "qb"])),
        workers=workers,
        least=draw(st.integers(1, workers)),
        gpus=gpus,
        flavors=tuple(draw(st.lists(st.sampled_from(FLAVORS), unique=True, min_size=1))),
        priority=draw(st.integers(0, 1)),
        order=draw(st.integers(0, 2)),
        cpu=draw(st.integers(0, 4)),
        memory=draw(st.integers(0, 4)),
        mode=draw(st.sampled_from(TopologyMode)),
        level=draw(st.sampled_from(LEVELS)),
        spread=draw(st.sampled_from(SpreadPolicy)),
        service=draw(st.booleans()),
        clusters=draw(st.sampled_from([(), (), ("c1",), ("c1", "c2")])),
        excluded=draw(st.sampled_from([(), (), ("n0",)])),
        tolerated=draw(st.sampled_from([frozenset(), frozenset({1})])),
    )


@st.composite
def queues(draw: st.DrawFn) -> list[QueueIn]:
    def amounts(lowest: int) -> dict[str, int]:
        return {flavor: draw(st.integers(lowest, 8)) for flavor in FLAVORS}

    return [
        queue("root", nominal=amounts(UNLIMITED)),
        queue("qa", parent="root", nominal=amounts(0), used={flavor: draw(st.integers(0, 2)) for flavor in FLAVORS}),
        queue("qb", parent="root", nominal=amounts(0)),
    ]


@st.composite
def worlds(draw: st.DrawFn, max_nodes: int = 5, max_jobs: int = 4) -> Snapshot:
    return world(
        nodes=[draw(nodes(number)) for number in range(draw(st.integers(1, max_nodes)))],
        jobs=[draw(jobs(number)) for number in range(draw(st.integers(1, max_jobs)))],
        queues=draw(queues()),
        levels=LEVELS,
        flavors=FLAVORS,
        clusters=("c1", "c2"),
    )
