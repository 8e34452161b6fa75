"""Short steps: one act, a beat or two of the portal, and the invariants; after some of them peace, and all must end."""

import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from django.core.management import call_command

from clusters.models import Cluster, Node, NodeAccelerator
from clusters.services.maintenance import end_maintenance
from clusters.services.quarantine import release_node
from clusters.simulated.fleet import uniform
from jobs.engine import cycle
from jobs.models import Job
from portal.core.audit import SYSTEM
from quotas.models import Quota
from quotas.services.tree import set_paused, set_quota
from tests.chaos.short import ACTS, GPUS, NODES, Ground, submit_gang
from tests.chaos.standing import Wrong, unexplained, wrong_at_rest, wrong_now
from tests.clusters_running import MERGE_PATCH, running_cluster
from tests.dispatch.scrape import scrape
from tests.dispatch.stage import Stage, set_stage, strike
from tests.factories import make_priority_class
from tests.watchlog import WatchLog

STEPS = 25
FEWEST_ALIVE = 3
CLOCK = 10
PATIENCE_S = 60.0
# The last acts before a violation are told with it.
STORY = 12
MOST_TOLD = 10
OWNED = ("/apis/batch/v1/jobs", "/apis/apps/v1/deployments", "/api/v1/pods", "/api/v1/services")


@dataclass
class Tally:
    """What happened over all episodes, and what of it was wrong."""

    steps: int = 0
    longest_s: float = 0.0
    runs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def line(self) -> dict[str, Any]:
        """What one line of JSON says."""
        return {
            "ok": not self.violations,
            "steps": self.steps,
            "cluster": "simulated",
            "runs": self.runs,
            "outcomes": dict(self.outcomes),
            "faults": dict(sorted(self.faults.items())),
            "violations": len(self.violations),
            "examples": self.violations[:MOST_TOLD],
            "longest_step_s": round(self.longest_s, 2),
        }

    def wrong(self, episode: int, ground: Ground, found: Wrong) -> None:
        """Add one violation, with what was done before it."""
        rule, subject, detail = found
        story = ", ".join(ground.story[-STORY:])
        at = {"episode": episode, "step": len(ground.story), "rule": rule, "subject": subject}
        self.violations.append({**at, "detail": f"{detail[:900]}; after {story}"})


def play_all(steps: int, seed: int, only: int | None) -> Tally:
    """Play episodes until so many steps were made, or one of them alone, on a database that is made ready first."""
    call_command("migrate", verbosity=0)
    tally = Tally()
    with standing_stage() as stage:
        for number in [only] if only is not None else range(-(-steps // STEPS)):
            left = STEPS if only is not None else min(STEPS, steps - tally.steps)
            play(stage, number, left, Random(f"{seed}-steps-{number}"), tally)  # noqa: S311 -- not a secret
    return tally


@contextmanager
def standing_stage() -> Iterator[Stage]:
    """A simulated cluster that is registered in an empty, migrated database, and watched."""
    with running_cluster(uniform(nodes=NODES, gpus=GPUS, per_rack=2), clock=CLOCK) as cluster:
        stage = set_stage(cluster, WatchLog(cluster))
        Cluster.objects.update(exporter_url=cluster.exporter)
        make_priority_class("urgent", 5_000)
        try:
            stage.until(
                lambda: NodeAccelerator.objects.filter(allocatable=GPUS).count() == NODES, "the nodes are known"
            )
            yield stage
        finally:
            strike(stage)


def play(stage: Stage, number: int, steps: int, random: Random, tally: Tally) -> None:
    """Play one episode on a quiet stage, and judge it; the stage is quiet again afterwards."""
    ground = Ground(stage, random)
    for _ in range(steps):
        began = time.monotonic()
        if len(ground.alive()) < FEWEST_ALIVE:
            submit_gang(ground)  # where nothing runs nothing breaks
        act = random.choice(ACTS)
        tally.faults[act.__name__] += 1
        ground.story.append(act.__name__)
        for found in _step(ground, act):
            tally.wrong(number, ground, found)
        tally.steps += 1
        tally.longest_s = max(tally.longest_s, time.monotonic() - began)
    ground.story.append("peace")
    for found in _peace(ground):
        tally.wrong(number, ground, found)
    runs = Job.objects.all()
    tally.runs = runs.count()
    tally.outcomes = Counter(runs.values_list("state", flat=True))


def _step(ground: Ground, act: Any) -> Iterator[Wrong]:
    try:
        act(ground)
        before = set(Job.objects.filter(state=Job.State.QUEUED).values_list("pk", flat=True))
        for _ in range(ground.random.randint(1, 3)):
            time.sleep(ground.random.choice([0, 0.02, 0.1]))
            ground.stage.turn()
            yield from wrong_now(ground)
        if cycle.run_once():
            yield from unexplained(before)
        yield from wrong_now(ground)
    except Exception:  # nothing that happens to a portal may make it raise
        yield "raised", act.__name__, traceback.format_exc(limit=-6)
    yield from (("raised", act.__name__, text) for text in ground.raised)
    ground.raised.clear()
    yield from _judged(ground.stage)


def _judged(stage: Stage) -> Iterator[Wrong]:
    for violation in stage.log.take():
        yield violation.rule, violation.subject, violation.detail


def _peace(ground: Ground) -> Iterator[Wrong]:
    try:
        _heal(ground)
        scrape()
        yield from _until_all_have_ended(ground)
        for job in ground.alive():
            yield "ends", job.full_name, f"{job.state}, {job.reason_code}\n{ground.stage.report()}"
            ground.stage.cancel(job)
        yield from _until_all_have_ended(ground)
        yield from wrong_at_rest(ground)
        _clear(ground)
    except Exception:  # as above
        yield "raised", "peace", traceback.format_exc(limit=-6)
    yield from _judged(ground.stage)


def _heal(ground: Ground) -> None:
    """Undo all that would not pass by itself; services end by a word."""
    _heal_cluster(ground)
    for node in Node.objects.filter(quarantined_at__isnull=False):
        release_node(actor=SYSTEM, node=node)
    for node in Node.objects.filter(maintenance_at__isnull=False):
        end_maintenance(actor=SYSTEM, node=node)
    _restore_queue(ground)
    for job in ground.alive():
        if job.is_service:
            ground.stage.cancel(job)


def _heal_cluster(ground: Ground) -> None:
    stage = ground.stage
    ground.is_out = False
    for path, body in (("outage", {"seconds": 0}), ("forget-rights", {"seconds": 0})):
        ground.control("POST", path, body)
    for path, body in (("clock", {"ahead": 0}), ("latency", {"seconds": 0})):
        ground.control("PUT", path, body)
    for name in (f"node-{number}" for number in range(NODES)):
        ground.control("POST", f"nodes/{name}/recover")
        ground.control("PUT", f"nodes/{name}/gpus", {"allocatable": GPUS})
        for index in range(GPUS):
            ground.control("DELETE", f"gpus/{name}/{index}")
        stage.simulated.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}}, kind=MERGE_PATCH)
        _mend(stage, name)
    for path in ("/api/v1/resourcequotas", "/api/v1/namespaces/default/pods"):
        _delete_all(stage, path)


def _mend(stage: Stage, name: str) -> None:
    path = f"/api/v1/nodes/{name}"
    conditions = stage.simulated.request("GET", path)[1]["status"]["conditions"]
    well = {"status": {"conditions": [each for each in conditions if each["type"] != "GpuUnhealthy"]}}
    stage.simulated.request("PATCH", f"{path}/status", well, kind=MERGE_PATCH)


def _restore_queue(ground: Ground) -> None:
    queue, flavor = ground.stage.queue, ground.stage.flavor
    queue.refresh_from_db()
    if queue.is_paused:
        set_paused(actor=SYSTEM, queue=queue, is_paused=False, expected_version=queue.version)
    version = Quota.objects.get(queue=queue, flavor=flavor).version
    set_quota(actor=SYSTEM, owner=queue, flavor=flavor, nominal=1_000, expected_version=version)


def _until_all_have_ended(ground: Ground) -> Iterator[Wrong]:
    end_s = time.monotonic() + PATIENCE_S
    while ground.alive() and time.monotonic() < end_s:
        ground.stage.turn()
        yield from wrong_now(ground)
        time.sleep(0.05)


def _clear(ground: Ground) -> None:
    """Leave an empty cluster to the next episode."""
    stage = ground.stage
    for path in OWNED:
        _delete_all(stage, path)
    stage.simulated.wait_for(lambda: not stage.simulated.request("GET", "/api/v1/pods")[1]["items"], "no pod is left")


def _delete_all(stage: Stage, path: str) -> None:
    prefix, kind = path.split("/namespaces/default")[0].rstrip("/"), path.rsplit("/", 1)[1]
    prefix = prefix.removesuffix(f"/{kind}")
    for item in stage.simulated.request("GET", path)[1]["items"] or ():
        meta = item["metadata"]
        one = f"{prefix}/namespaces/{meta['namespace']}/{kind}/{meta['name']}"
        stage.simulated.request("DELETE", one, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
