"""One whole cycle in process: 1,000 pending gangs on 1,000 and on 10,000 nodes, against a loop over nodes in Python.

Synthetic fleets of 8-GPU nodes, about 70 % full: 2 clusters, blocks of 16 racks of 16 nodes, three flavors, a few
cordoned and tainted nodes, 40 queues in 8 cohorts. Timed is decide() as a cycle calls it: sorting, quota, places,
ranks and the reason of every gang that waits. The loop does less (no reasons) and must admit the same gangs on the
same hosts; nothing is charged to it that decide() need not do as well.
"""

import argparse
import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from jobs.scheduler.decide import decide
from jobs.scheduler.types import (
    Hold,
    Hosts,
    IntArray,
    Offers,
    QuotaTree,
    Snapshot,
    SpreadPolicy,
    TopologyMode,
    Workload,
)
from tests.bench.peers.loop import loop_decide

SEED = 20261201
GANGS = 1_000
SIZES = (1_000, 10_000)
LOOP_NODES = 10_000
GPUS_PER_NODE = 8
RACK, BLOCK = 16, 256  # nodes
LEVELS = ("block", "rack", "node")
FLAVORS = ("A100-SXM4-80GB", "H100-SXM5-80GB", "V100-SXM2-32GB")
QUEUES, COHORTS = 40, 8
# (workers, GPUs per worker) and how often: 1 to 64 GPUs.
SHAPES = [(1, 1), (1, 2), (1, 4), (1, 8), (4, 1), (2, 4), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8)]
SHARES = [0.22, 0.1, 0.1, 0.14, 0.04, 0.06, 0.1, 0.05, 0.09, 0.04, 0.06]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of timed cycles."""
    parser.add_argument("--repeat", type=int, default=25, help="timed cycles per size")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Time the cycles and return the results."""
    results: dict[str, Any] = {}
    for nodes in SIZES:
        fleet = snapshot(nodes)
        timed = [_timed(decide, fleet) for _ in range(args.repeat + 2)][2:]  # the first two warm caches
        wall, cpu = zip(*timed, strict=True)
        outcome = decide(fleet)
        results |= {
            f"p50_ms_{nodes}": round(float(np.percentile(wall, 50)), 1),
            f"p95_ms_{nodes}": round(float(np.percentile(wall, 95)), 1),
            f"p50_cpu_ms_{nodes}": round(float(np.percentile(cpu, 50)), 1),  # tells a busy machine from slow code
            f"admitted_{nodes}": len(outcome.admissions),
            f"waiting_{nodes}": dict(Counter(wait.reason.code.value for wait in outcome.waits)),
        }
    results |= _against_loop()
    results["facts"] = {"gangs": GANGS, "sizes": SIZES, "loop_nodes": LOOP_NODES, "seed": SEED, "repeat": args.repeat}
    return results


def _against_loop() -> dict[str, Any]:
    """Compare the best CPU times of both, taken in turn so that other load falls on both alike."""
    fleet = snapshot(LOOP_NODES)
    if loop_decide(fleet) != decide(fleet).admissions:
        raise AssertionError("the loop and decide() disagree: the comparison would not be fair")
    turns = [(_timed(loop_decide, fleet)[1], _timed(decide, fleet)[1]) for _ in range(3)]
    loop_ms, decide_ms = (min(column) for column in zip(*turns, strict=True))
    return {
        "loop_ms": round(loop_ms, 1),
        "decide_ms": round(decide_ms, 1),
        "speedup_vs_loop": round(loop_ms / decide_ms, 1),
    }


def _timed(call: Callable[[Snapshot], object], fleet: Snapshot) -> tuple[float, float]:
    """Return wall and CPU time in ms."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    call(fleet)
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def snapshot(nodes: int, gangs: int = GANGS) -> Snapshot:
    """Build the synthetic fleet and its pending gangs; the same arguments give the same snapshot."""
    rng = np.random.default_rng(SEED)
    hosts, offers = _fleet(rng, nodes)
    return Snapshot(
        clusters=("east", "west"),
        levels=LEVELS,
        flavors=FLAVORS,
        hosts=hosts,
        offers=offers,
        quota=_quota(nodes),
        workloads=tuple(_gang(rng, number) for number in range(gangs)),
    )


def _fleet(rng: np.random.Generator, nodes: int) -> tuple[Hosts, Offers]:
    number = np.arange(nodes)
    block, rack = number // BLOCK, number // RACK
    part_used = rng.random(nodes) < 0.2
    free = np.where(part_used, rng.integers(1, GPUS_PER_NODE, nodes), GPUS_PER_NODE * (rng.random(nodes) < 0.26))
    total = {name: np.full(nodes, amount) for name, amount in (("cpu", 128_000), ("memory", 1_048_576), ("pods", 110))}
    left = {name: amounts * (free + 1) // (GPUS_PER_NODE + 1) for name, amounts in total.items()}
    hosts = Hosts(
        ids=tuple(f"node-{index:05d}" for index in rng.permutation(nodes)),
        cluster=(block % 2).astype(np.int64),
        hold=np.where(rng.random(nodes) < 0.01, Hold.CORDONED, Hold.NONE).astype(np.int64),
        taints=(rng.random(nodes) < 0.03).astype(np.int64),
        cpu_milli=left["cpu"],
        memory_mib=left["memory"],
        pods=left["pods"],
        cpu_milli_total=total["cpu"],
        memory_mib_total=total["memory"],
        pods_total=total["pods"],
        domains=np.column_stack([block, rack + nodes, number + 2 * nodes]),
    )
    flavor: IntArray = np.array([0, 0, 0, 1, 1, 2])[rack % 6]
    return hosts, Offers(host=number, flavor=flavor, free=free, total=np.full(nodes, GPUS_PER_NODE))


def _quota(nodes: int) -> QuotaTree:
    """Cohorts share the fleet; queues may take three times their share of the cohort, so both levels bind."""
    fair = nodes * GPUS_PER_NODE // (3 * QUEUES)
    cohort = np.full((COHORTS, len(FLAVORS)), 2 * fair * QUEUES // COHORTS)
    queue = np.full((QUEUES, len(FLAVORS)), fair)
    used = np.vstack([np.zeros_like(cohort), np.full_like(queue, fair * 7 // 10)])
    parent = np.concatenate([np.full(COHORTS, -1), np.arange(QUEUES) % COHORTS])
    ids = (*(f"cohort-{index}" for index in range(COHORTS)), *(f"queue-{index:02d}" for index in range(QUEUES)))
    return QuotaTree(ids=ids, parent=parent, nominal=np.vstack([cohort, queue]), used=used)


def _gang(rng: np.random.Generator, number: int) -> Workload:
    workers, gpus = SHAPES[rng.choice(len(SHAPES), p=SHARES)]
    is_service = bool(rng.random() < 0.1)
    mode = TopologyMode.NONE if is_service else rng.choice(list(TopologyMode), p=[0.1, 0.7, 0.2])
    return Workload(
        id=f"job-{number:04d}",
        queue=COHORTS + int(rng.integers(QUEUES)),
        priority=int(rng.choice([100, 1_000, 10_000], p=[0.3, 0.6, 0.1])),
        submitted_at=float(rng.integers(86_400)),
        workers=workers,
        min_workers=1 if is_service else workers,
        gpus_per_worker=gpus,
        flavors=[(0,), (1, 0), (0, 1, 2), (2,)][rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])],
        cpu_milli=12_000 * gpus,
        memory_mib=98_304 * gpus,
        topology=TopologyMode(mode),
        level="rack" if rng.random() < 0.7 else "block",
        spread=SpreadPolicy.AUTO,
        is_service=is_service,
        tolerated=frozenset({1}) if rng.random() < 0.1 else frozenset(),
    )
