"""One random schedule: runs of many sizes, some acts of chaos, peace, and then nothing may be wrong or left."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from tests.chaos.acts import ACTS, Request, World
from tests.crash.site import ENDED, Site, judged

LONGEST_PAUSE_S = 1.5
SIZES = ((1, 1), (1, 8), (2, 4), (2, 8), (3, 1), (4, 2), (4, 4))  # workers, GPUs each
# A run that does not end in peace within this time is stuck.
PATIENCE_S = 90.0


@dataclass
class Report:
    """What happened over all schedules, and what of it was wrong."""

    schedules: int = 0
    runs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[dict[str, Any]] = field(default_factory=list)

    def wrong(self, schedule: int, rule: str, subject: str, detail: str) -> None:
        """Add one violation."""
        self.violations.append({"schedule": schedule, "rule": rule, "subject": subject, "detail": detail[:600]})


def run_schedule(site: Site, outside: Request, nodes: Sequence[str], random: Random, report: Report) -> None:
    """Play one schedule on a quiet site and judge it; the site is quiet again afterwards."""
    number = report.schedules
    world = World(site, outside, list(nodes), random)
    with judged(site) as broken:
        _submit(world)
        for _ in range(random.randint(2, 5)):
            act = random.choice(ACTS)
            report.faults[act.__name__] += 1
            world.story.append(act.__name__)
            act(world)
            time.sleep(random.uniform(0, LONGEST_PAUSE_S))
        world.heal()
        _settle(world, report, number)
    story = ", ".join(world.story)
    for violation in broken:
        report.wrong(number, violation.rule, violation.subject, f"{violation.detail}; after {story}")
    report.schedules += 1


def wrong_in_the_ledger(site: Site) -> list[dict[str, Any]]:
    """What the portal's own check of its books finds."""
    return [dict(finding) if isinstance(finding, dict) else asdict(finding) for finding in site.portal.doctor()]


def _submit(world: World) -> None:
    random, api = world.random, world.site.portal.api
    for _ in range(random.randint(2, 4)):
        run_s = random.choice([1, world.site.short_s, 3 * world.site.short_s])
        world.jobs.append(api.submit(_gang(random, run_s)))
    if random.random() < 0.4:
        world.services.append(api.submit(_service(random)))


def _gang(random: Random, run_s: int) -> dict[str, Any]:
    workers, gpus = random.choice(SIZES)
    return {
        "name": "chaos",
        "kind": "training",
        "image": "example.org/train:1",
        "workers": workers,
        "gpus_per_worker": gpus,
        "accelerators": ["h100"],
        "priority": random.choice(["research", "standard", "development"]),
        "backoff_limit": 3,
        "env": {"SIM_RUN_S": str(run_s)},
    }


def _service(random: Random) -> dict[str, Any]:
    return {
        "name": "chaos-serve",
        "kind": "inference",
        "image": "example.org/serve:1",
        "replicas": random.randint(1, 3),
        "gpus_per_worker": random.choice([1, 2]),
        "accelerators": ["h100"],
        "port": 8080,
        "service_port": 80,
    }


def _settle(world: World, report: Report, number: int) -> None:
    """Every run ends by itself, services by a word; then nothing is held and nothing is bound."""
    portal, story = world.site.portal, ", ".join(world.story)
    stuck = _wait_for_ends(world)
    for job in stuck:
        detail = f"{job['state']}, {job['reason']}, attempts {job['attempts']}; after {story}"
        report.wrong(number, "ends", job["id"], detail)
    for run in (*world.services, *(job["id"] for job in stuck)):
        portal.api.ask("POST", f"jobs/{run}/cancel/")
    for run in (*world.jobs, *world.services):
        job = portal.until_state(run, *ENDED, timeout_s=PATIENCE_S)
        report.runs += 1
        report.outcomes[job["state"]] += 1
        if job["state"] == "failed" and not job["outcome"]["message"]:
            report.wrong(number, "reason", run, f"failed without a reason; after {story}")
        if bound := world.site.bound(run):
            report.wrong(number, "gone", run, f"still bound to {bound}; after {story}")
    if held := portal.held():
        report.wrong(number, "ledger", "all", f"{held} GPUs held by nobody; after {story}")


def _wait_for_ends(world: World) -> list[dict[str, Any]]:
    end_s = time.monotonic() + PATIENCE_S
    alive = [world.site.portal.api.job(run) for run in world.jobs]
    while alive and time.monotonic() < end_s:
        alive = [job for job in (world.site.portal.api.job(job["id"]) for job in alive) if job["state"] not in ENDED]
        time.sleep(0.2)
    return alive
