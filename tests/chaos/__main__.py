"""`./run chaos --schedules N --seed S [--kube]`: random faults on a portal of real processes, one line of JSON.

`./run chaos --steps N --seed S`: short steps instead, in one process on a real database and the simulated cluster, with
the invariants after every one of them; 25 steps are an episode, after which all must end.

Each schedule, and each episode, has a seed of its own, S and its number, and `--only` plays one again. The exit code is
0 only if no invariant was broken at any watch event of the cluster, every run ended with its reason, and nothing was
left.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import django
from django.utils.module_loading import import_string

from clusters.simulated.fleet import uniform, with_teams
from portal.embedded.postgres import Postgres
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
    return _play_steps(args) if args.steps else _play_schedules(args)


def _play_steps(args: argparse.Namespace) -> int:
    # What a person waits minutes for is over within a step or a few here.
    for name in ("MUSTER_GATHER_S", "MUSTER_BIND_S", "MUSTER_STALE_AFTER_S", "MUSTER_EXCLUDE_S"):
        os.environ[name] = "4"
    os.environ |= {"MUSTER_START_S": "10", "MUSTER_PASS_S": "2", "MUSTER_FAULT_GRACE_S": "0.5"}
    os.environ.setdefault("MUSTER_LOG_LEVEL", "ERROR")
    with _empty_database() as url:
        os.environ["DATABASE_URL"] = url
        django.setup()
        began = time.monotonic()
        # By its name: rows can be imported only once Django is set up.
        tally = import_string("tests.chaos.episode.play_all")(args.steps, args.seed, args.only)
        print(json.dumps({**tally.line(), "seed": args.seed, "seconds": round(time.monotonic() - began, 1)}))
        return 1 if tally.violations else 0


@contextmanager
def _empty_database() -> Iterator[str]:
    """A server of our own, whatever DATABASE_URL says: much is made and broken in it."""
    with TemporaryDirectory(prefix="muster-chaos-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # root's server runs as nobody, who must be able to pass
        with Postgres(Path(folder) / "postgres", durable=False) as postgres:
            postgres.create_database("muster")
            yield postgres.url("muster")


def _play_schedules(args: argparse.Namespace) -> int:
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
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--schedules", type=int, default=20)
    many.add_argument("--steps", type=int, default=0, help="short steps instead of schedules")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="N", help="play schedule, or episode, N alone")
    parser.add_argument("--kube", action="store_true", help="on a real control plane instead of the simulated cluster")
    return parser.parse_args(arguments)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
