"""A portal that starts again: 5,000 nodes, 10,000 gangs at work, 5,000 runs that wait.

The rows are those of a portal that was away for ten minutes (`tests.bench.crowd`); the cluster is served as bytes by a
process of its own, which notes and refuses every change. Then worker, beat and watch start. Measured from there: the
first stored cycle that decided on all waiting runs and began when the cluster's state was fresh, and the moment when
the driver had looked at every gang. A gang that is started again, touched on the cluster, or lost, is counted.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from tests.bench.crowd import CLUSTER, WORKERS
from tests.e2e.portal import ROOT, RunningPortal, running_portal

NODES, GANGS, PENDING = 5_000, 10_000, 5_000
DAEMONS = 6  # foreign pods on each node
DOMAIN, INSTALLATION = "muster.internal", "default"
PATIENCE_S = 180.0
POLL_S = 0.1
# As they are by default, not as tests have them.
SETTINGS = {"MUSTER_BEAT_S": "2", "MUSTER_STALE_AFTER_S": "15"}
STARTED = ("worker", "beat", "watch")


class NotYetError(AssertionError):
    """What was waited for has not come."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--gangs", type=int, default=GANGS, help="at work, of two workers with two GPUs each")
    parser.add_argument("--pending", type=int, default=PENDING)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Make the rows, start the processes, and watch what they do."""
    with _served(args) as url, running_portal({}, settings=SETTINGS, durable=True) as portal:
        for name in tuple(portal.processes):
            portal.halt(name)
        _fill(portal, url, args)
        began_s = time.time()
        for name in STARTED:
            portal.launch(name)
        results = _follow(portal, began_s, args.pending)
        results |= judged(_gangs(portal), _written(url), args.gangs)
        findings = portal.doctor()
    if findings:
        raise AssertionError(f"rows and cluster disagree after the restart: {findings[:3]}")
    sizes = {"nodes": args.nodes, "gangs": args.gangs, "pending": args.pending}
    return {**results, "facts": {**sizes, "foreign_pods": args.nodes * DAEMONS, "processes": STARTED}}


def judged(gangs: Iterable[tuple[str, str, int]], written: Iterable[Mapping[str, str]], count: int) -> dict[str, Any]:
    """Count the gangs (their run, state and attempts) that were started again, touched on the cluster, or lost."""
    rows = {uid: (state, attempts) for uid, state, attempts in gangs}
    again = {uid for uid, (_state, attempts) in rows.items() if attempts != 1}
    parts = [{each["name"], *each["path"].partition("?")[0].split("/")} for each in written]
    touched = {uid for names in parts for uid in names if uid in rows}
    lost = {uid for uid, (state, _attempts) in rows.items() if state != "running"}
    return {
        "double_starts": len(again | touched | lost) + count - len(rows),
        "started_again": len(again),
        "touched": len(touched),
        "lost": len(lost) + count - len(rows),
    }


@contextmanager
def _served(args: argparse.Namespace) -> Iterator[str]:
    ours = args.gangs * WORKERS
    pods = ours + args.nodes * DAEMONS
    sizes = ["--nodes", str(args.nodes), "--pods", str(pods), "--ours", str(ours), "--gang", str(WORKERS), "--quiet"]
    command = [sys.executable, "-m", "tests.bench.supply", *sizes, "--domain", DOMAIN, "--installation", INSTALLATION]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield f"http://127.0.0.1:{(process.stdout.readline() if process.stdout else '').strip()}"
        finally:
            process.terminate()


def _fill(portal: RunningPortal, url: str, args: argparse.Namespace) -> None:
    told = portal.shell(f"from tests.bench.crowd import fill; fill('{url}', {args.gangs}, {args.pending})")
    findings = json.loads(told.splitlines()[-1])["findings"]
    if findings:
        raise AssertionError(f"the rows are not sound: {findings[:3]}")


HEARD = "SELECT 1 FROM clusters_cluster WHERE name = %s AND heard_at > to_timestamp(%s)"
# Whoever waits was told a reason that is not the cluster's silence.
DECIDED = """
SELECT snapshot_ms, decide_ms, apply_ms, admitted FROM jobs_cycle
WHERE started_at >= to_timestamp(%s) AND pending = %s AND apply_ms > 0
  AND NOT EXISTS (SELECT 1 FROM jobs_job WHERE state = 'queued' AND reason_code IN ('', 'cluster_stale'))
ORDER BY id LIMIT 1
"""
ADOPTED = """
SELECT 1 WHERE NOT EXISTS (
    SELECT 1 FROM jobs_attempt WHERE step = 'running' AND looked_at < to_timestamp(%s)
)
"""


def _follow(portal: RunningPortal, began_s: float, pending: int) -> dict[str, Any]:
    fresh_s, _row = _until(portal, HEARD, (CLUSTER, began_s))
    decided_s, row = _until(portal, DECIDED, (fresh_s, pending))
    adopted_s = _adopted_s(portal, began_s)
    return {
        "first_decision_s": round(decided_s - began_s, 1),
        "fresh_s": round(fresh_s - began_s, 1),
        "adopted_s": adopted_s,
        "cycle": dict(zip(("snapshot_ms", "decide_ms", "apply_ms", "admitted"), row, strict=True)),
    }


def _adopted_s(portal: RunningPortal, began_s: float) -> float | None:
    """When every gang had been looked at; None: not while we waited."""
    try:
        return round(_until(portal, ADOPTED, (began_s,))[0] - began_s, 1)
    except NotYetError:
        return None


def _until(portal: RunningPortal, query: str, values: Sequence[Any]) -> tuple[float, tuple[Any, ...]]:
    """Return when the query first had an answer, and the first row of it."""
    end_s = time.time() + PATIENCE_S
    while time.time() < end_s:
        if rows := portal.rows(query, values):
            return time.time(), rows[0]
        time.sleep(POLL_S)
    raise NotYetError(f"not within {PATIENCE_S:.0f} s: {query}")


def _gangs(portal: RunningPortal) -> list[tuple[Any, ...]]:
    return portal.rows(
        "SELECT uid, state, (SELECT count(*) FROM jobs_attempt WHERE job_id = job.id) FROM jobs_job job"
        " WHERE name = 'running'"
    )


def _written(url: str) -> list[dict[str, str]]:
    with urlopen(f"{url}/written") as answer:  # noqa: S310 -- our own server
        told: list[dict[str, str]] = json.load(answer)
    return told
