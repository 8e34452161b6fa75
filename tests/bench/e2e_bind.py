"""Gangs on a real control plane: through the portal, as plain Jobs, and admitted by Kueue, in turn.

(a) jobs of one GPU, (b) gangs of eight pods, (c) one gang of 512 pods. Dispatch alone starts with jobs that are placed
already, from the first object on the cluster to the last binding; the whole path starts with the first REST request.
Every watch event is judged by the invariants afterwards. Ratios are medians over the rounds, each of which runs all.
Kueue admits Workloads with its own topology-aware scheduling; that makes no pod, so it stands beside, not against.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from tests.bench.stage import LEVELS, NAMESPACE, Measured, Shape, Stage, in_parallel, running_stage
from tests.bench.targets import E2E_BIND, Target
from tests.kube import kueue
from tests.kube.build import VERSIONS, BuildError, built

JOBS, NODES, ROUNDS = 1_000, 500, 3
GANG, LARGE_GANG = 8, 512
KUEUE_PATIENCE_S = 120.0
Round = dict[str, Measured]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the level and the sizes."""
    parser.add_argument("--level", choices=sorted(LEVELS), default="B")
    parser.add_argument("--nodes", type=int, default=NODES, help="of eight GPUs")
    parser.add_argument(
        "--jobs", type=int, default=JOBS, help="jobs of one GPU; gangs and the large gang in proportion"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def targets(args: argparse.Namespace) -> Sequence[Target]:
    """What the level must reach."""
    return E2E_BIND[args.level]


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run all rounds on one control plane."""
    singles, gangs, large = shapes(args.jobs)
    level = LEVELS[args.level]
    rounds: list[Round] = []
    admissions: list[dict[str, float]] = []
    with running_stage(level, args.nodes) as stage:
        kueue_trouble = _try_to_build()
        for _each in range(args.rounds):
            rounds.append(_round(stage, singles, gangs, large))
            if not kueue_trouble:
                admissions.append(_kueue(stage, (singles, gangs, large)))
    sizes = {"nodes": args.nodes, "jobs": args.jobs, "rounds": args.rounds, "level": args.level}
    about = {**sizes, "kubernetes": VERSIONS[level.version], "kueue": kueue_trouble or kueue.VERSION}
    return {
        **figures(rounds, singles, gangs, large),
        "kueue_admissions_per_s": {name: round(median(each[name] for each in admissions), 1) for name in "abc"}
        if admissions
        else None,
        "facts": about,
    }


def shapes(jobs: int) -> tuple[Shape, Shape, Shape]:
    """The three shapes of a size: of 1,000 jobs, 125 gangs of 8 and one of 512."""
    large = jobs * LARGE_GANG // JOBS
    return Shape("a", jobs, 1), Shape("b", max(1, jobs // GANG), GANG), Shape("c", 1, max(2, min(LARGE_GANG, large)))


def figures(rounds: Sequence[Round], singles: Shape, gangs: Shape, large: Shape) -> dict[str, Any]:
    """The numbers of the targets, and what they come from."""
    found = [violation for each in rounds for measured in each.values() for violation in measured.violations]
    extra = [
        (each[f"dispatch_{shape.name}"].pod_writes - each[f"plain_{shape.name}"].pod_writes) / shape.pods
        for each in rounds
        for shape in (gangs, large)
    ]
    return {
        "dispatch_ratio_b": _ratio(rounds, "plain_b", "dispatch_b"),
        "gang512_ratio": _ratio(rounds, "dispatch_c", "plain_c"),
        "path_ratio_b": _ratio(rounds, "plain_b", "path_b"),
        "jobs_per_s_a": round(singles.jobs / median(each["path_a"].seconds for each in rounds), 1),
        "partial_gangs": len(found),
        "extra_writes_per_pod": round(median(extra), 2),
        "violations": found[:5],
        "seconds": {name: [round(each[name].seconds, 2) for each in rounds] for name in rounds[0]},
        "pod_writes": {name: [each[name].pod_writes for each in rounds] for name in rounds[0]},
    }


def _ratio(rounds: Iterable[Mapping[str, Measured]], above: str, below: str) -> float:
    return round(median(each[above].seconds / each[below].seconds for each in rounds), 2)


def _round(stage: Stage, singles: Shape, gangs: Shape, large: Shape) -> Round:
    return {
        "plain_b": stage.plain(gangs),
        "dispatch_b": stage.dispatch(gangs),
        "plain_c": stage.plain(large),
        "dispatch_c": stage.dispatch(large),
        "path_b": stage.path(gangs),
        "plain_a": stage.plain(singles),
        "path_a": stage.path(singles),
    }


def _try_to_build() -> str:
    """Why there is no Kueue here; empty when there is."""
    try:
        built(kueue.WRAPPER)
    except BuildError as error:
        return f"not built: {error}"
    return ""


def _kueue(stage: Stage, all_shapes: Sequence[Shape]) -> dict[str, float]:
    """Admissions a second of each shape, while the portal stands still."""
    stage.portal.pause()
    try:
        with kueue.running_kueue(stage.plane, NAMESPACE, gpus=100_000):
            return {shape.name: shape.jobs / _admission_s(stage, shape) for shape in all_shapes}
    finally:
        stage.portal.resume()


def _admission_s(stage: Stage, shape: Shape) -> float:
    # A rack holds 32 GPUs.
    topology = {"unconstrained": True} if shape.pods_a_job > GANG else {"required": "muster.example/rack"}
    bodies = [
        kueue.workload(f"{shape.name}-{number}", NAMESPACE, pods=shape.pods_a_job, topology=topology)
        for number in range(shape.jobs)
    ]
    path = kueue.path_of_workloads(NAMESPACE)
    began_s = time.monotonic()
    in_parallel(lambda body: stage.plane.admin.apply(path, body), bodies)
    _wait(lambda: kueue.admitted_count(stage.plane) == shape.jobs, f"Kueue has admitted {shape.jobs} Workloads")
    seconds = time.monotonic() - began_s
    if (placed := kueue.admitted(stage.plane, NAMESPACE)) != shape.jobs:
        raise AssertionError(f"Kueue gave {placed} of {shape.jobs} Workloads a place")
    stage.plane.admin.request("DELETE", path, {}, timeout_s=60)
    _wait(lambda: kueue.admitted_count(stage.plane) == 0, "Kueue has let go of all")
    return seconds


def _wait(probe: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + KUEUE_PATIENCE_S
    while not probe():
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {KUEUE_PATIENCE_S:.0f} s: {what}")
        time.sleep(0.05)
