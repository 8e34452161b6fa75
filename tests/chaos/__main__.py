"""`./run chaos --schedules N --seed S [--kube]`: random faults on a portal of real processes, one line of JSON.

Each schedule has a seed of its own, S and its number, and `--only` plays one again. The exit code is 0 only if no
invariant was broken at any watch event of the cluster, every run ended with its reason, and nothing was left.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import django

from clusters.simulated.fleet import uniform, with_teams
from tests.__main__ import SETTINGS
from tests.chaos.acts import Request
from tests.chaos.schedule import Report, run_schedule, wrong_in_the_ledger
from tests.clusters_running import running_cluster
from tests.crash.site import Door, Site, running_site
from tests.kube import fleet
from tests.kube.plane import running_plane

NODES = 4
LEVELS = (("rack", "topology.muster.internal/rack"),)
MOST_TOLD = 10
Place = tuple[Site, Request, list[str]]


def main(arguments: list[str]) -> int:
    """Play the schedules and return the exit code."""
    args = _parse(arguments)
    signal.signal(signal.SIGTERM, _leave)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    django.setup()
    began = time.monotonic()
    report = Report()
    with _kube() if args.kube else _simulated() as (site, outside, nodes):
        for number in [args.only] if args.only is not None else range(args.schedules):
            run_schedule(site, outside, nodes, Random(f"{args.seed}-{number}"), report)  # noqa: S311 -- not a secret
        for finding in wrong_in_the_ledger(site):
            report.wrong(report.schedules, "doctor", "all", str(finding))
    print(json.dumps(_line(report, args, time.monotonic() - began)))
    return 1 if report.violations else 0


def _line(report: Report, args: argparse.Namespace, seconds: float) -> dict[str, Any]:
    return {
        "ok": not report.violations,
        "schedules": report.schedules,
        "seed": args.seed,
        "cluster": "real" if args.kube else "simulated",
        "runs": report.runs,
        "outcomes": dict(report.outcomes),
        "faults": dict(sorted(report.faults.items())),
        "violations": len(report.violations),
        "examples": report.violations[:MOST_TOLD],
        "seconds": round(seconds, 1),
    }


@contextmanager
def _simulated() -> Iterator[Place]:
    """Four nodes of eight GPUs, ten times as fast as the world."""
    equal = with_teams({**uniform(nodes=NODES, gpus=8, per_rack=NODES), "name": "held"})
    with running_cluster(equal, clock=10) as cluster:
        door = Door(server=cluster.url, token=cluster.token, levels=LEVELS, short_s=10)
        with running_site(door, NODES) as site:
            yield site, cluster.request, [f"node-{number}" for number in range(NODES)]


@contextmanager
def _kube() -> Iterator[Place]:
    """A real control plane with nodes of several kinds."""
    with running_plane("chaos", nodes=8) as plane:
        door = Door(server=plane.server, token=plane.token, ca=plane.ca, levels=fleet.LEVELS)
        names = [node["metadata"]["name"] for node in plane.admin.items("Node")]
        with running_site(door, len(names)) as site:
            yield site, plane.admin.request, names


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run chaos", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="N", help="play schedule N alone")
    parser.add_argument("--kube", action="store_true", help="on a real control plane instead of the simulated cluster")
    return parser.parse_args(arguments)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
