"""Three real control planes under constant load, of which one stops to answer half-way.

Jobs of one GPU come at one rate, in turn for each cluster; its API server is stopped by a signal, so that it accepts
connections and never answers. The dispatch wait of a job is the time from the decision to the moment when the portal
knows that it runs. On the healthy clusters it must not depend on the one that hangs.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from tests.bench.stage import SETTINGS, register
from tests.e2e.portal import RunningPortal, running_portal
from tests.kube.plane import running_plane

CLUSTERS, NODES, JOBS, RATE = 3, 24, 1_500, 6.0
RUN_S = 20
PARALLEL = 8
PATIENCE_S = 60.0
# Of each job on a healthy cluster: when it was submitted, and how long it waited from decision to running.
WAITS = """
SELECT extract(epoch FROM job.created_at), extract(epoch FROM job.started_at - job.admitted_at)
FROM jobs_job job JOIN jobs_attempt attempt ON attempt.job_id = job.id JOIN clusters_cluster cluster
    ON cluster.id = attempt.cluster_id
WHERE cluster.name <> %s AND attempt.number = 1 AND job.started_at IS NOT NULL
"""
LEFT = """
SELECT count(*) FROM jobs_job job, clusters_cluster cluster
WHERE job.cluster_ids = jsonb_build_array(cluster.id) AND cluster.name <> %s AND job.started_at IS NULL
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rate", type=float, default=RATE, help="jobs a second, over all clusters")
    parser.add_argument("--nodes", type=int, default=NODES, help="of eight GPUs, on each cluster")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Submit at a constant rate, let one hang after half of the jobs, and read the waits."""
    with ExitStack() as stack:
        names = [f"kube{number}" for number in range(1, CLUSTERS + 1)]
        planes = [stack.enter_context(running_plane(name, nodes=args.nodes)) for name in names]
        portal = stack.enter_context(running_portal({}, settings=SETTINGS))
        for plane in planes:
            register(portal, plane)
        portal.change("UPDATE quotas_quota SET nominal = 100000")
        probed = "SELECT 1 FROM clusters_cluster WHERE probed_at IS NOT NULL HAVING count(*) = %s"
        portal.wait_for(lambda: portal.rows(probed, [CLUSTERS]), "all clusters are checked")
        _submit(portal, names, args.jobs // 2, args.rate)
        hung_at = time.time()
        stack.callback(planes[-1].thaw_part, "kube-apiserver")
        planes[-1].freeze_part("kube-apiserver")
        _submit(portal, names, args.jobs - args.jobs // 2, args.rate)
        left = _until_healthy_run(portal, names[-1])
        rows = portal.rows(WAITS, [names[-1]])
    sizes = {"jobs": args.jobs, "rate": args.rate, "nodes": args.nodes, "clusters": CLUSTERS}
    return {**figures(rows, hung_at), "never_ran": left, "facts": sizes}


def figures(rows: Iterable[Sequence[Any]], hung_at: float) -> dict[str, Any]:
    """Compare the waits of the jobs that were submitted before the hang with those of the jobs after it."""
    waits = [(float(submitted), float(waited)) for submitted, waited in rows]
    before = [waited for submitted, waited in waits if submitted < hung_at]
    after = [waited for submitted, waited in waits if submitted >= hung_at]
    p95_before, p95_after = (float(np.percentile(each, 95)) for each in (before, after))
    return {
        "healthy_p95_ratio": round(p95_after / p95_before, 2),
        "p95_before_s": round(p95_before, 2),
        "p95_after_s": round(p95_after, 2),
        "median_before_s": round(float(np.median(before)), 2),
        "median_after_s": round(float(np.median(after)), 2),
        "waits": {"before": len(before), "after": len(after)},
    }


def _submit(portal: RunningPortal, clusters: Sequence[str], count: int, rate: float) -> None:
    body = {"name": "steady", "kind": "training", "image": "example.org/train:1", "gpus_per_worker": 1}
    began = time.monotonic()
    with ThreadPoolExecutor(PARALLEL) as pool:
        sent = []
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            place = {"clusters": [clusters[number % len(clusters)]], "env": {"SIM_RUN_S": str(RUN_S)}}
            sent.append(pool.submit(portal.api.submit, {**body, **place}))
        for each in sent:
            each.result()


def _until_healthy_run(portal: RunningPortal, hung: str) -> int:
    """Wait for the jobs of the healthy clusters; return how many have not run all the same."""
    end_s = time.monotonic() + PATIENCE_S
    while (left := int(portal.rows(LEFT, [hung])[0][0])) and time.monotonic() < end_s:
        time.sleep(0.5)
    return left
