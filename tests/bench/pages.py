"""Pages at 10,000 and at 200,000 jobs: what a member waits for must not grow with the history.

Some hundred jobs are live, as the fleet allows, whatever the size; the rest is history with one attempt and six events
each, over twenty teams. A signed-in member of one team asks through Django's test client, so that middleware,
permissions, queries and templates count and no network does. Every page is also asked once with its SQL recorded.
"""

import argparse
import gc
import logging
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from clusters.models import Node, ResourceFlavor
from jobs.models import Allocation, Attempt, Job
from portal.core import clock
from portal.identity.models import Team, User
from quotas.models import PriorityClass, Queue
from tests import factories

SEED = 20261201
SIZES = (10_000, 200_000)
TEAMS, PEOPLE_PER_TEAM = 20, 4
CLUSTERS, NODES_PER_CLUSTER = 2, 32
RUNNING, QUEUED = 300, 150
EVENTS_PER_JOB = 6
MADE_HERE = 5_000
ENDED = [Job.State.SUCCEEDED, Job.State.FAILED, Job.State.CANCELLED]
ENDED_SHARES = [70, 20, 10]
COUNT_OVER_JOBS = re.compile(r'COUNT\([^)]*\)[^;]*FROM "jobs_job"', re.IGNORECASE)

_HISTORY = """
INSERT INTO jobs_attempt (created_at, updated_at, job_id, number, cluster_id, namespace, object_name, object_uid,
    dispatch, workers, level, resource_name, step, step_at, due_at, fence, stop_code, stop_message, stop_requeues,
    started_at, ended_at)
SELECT created_at, created_at, id, 1, %(cluster)s, 'bench', 'm-' || uid || '-a1', '',
    'gates', workers, 'rack', 'nvidia.com/gpu', 'ended', finished_at, finished_at, 1, '', '', FALSE,
    started_at, finished_at
FROM jobs_job WHERE id > %(after)s AND finished_at IS NOT NULL;
INSERT INTO jobs_jobevent (job_id, at, code, data, actor)
SELECT job.id, job.created_at + make_interval(mins => minute), 'submitted', '{}', ''
FROM jobs_job AS job, generate_series(1, %(events)s) AS minute WHERE job.id > %(after)s
"""


@dataclass(frozen=True)
class World:
    """What jobs refer to."""

    teams: list[Team]
    queues: dict[int, Queue]
    people: dict[int, list[User]]
    nodes: list[Node]
    flavor: ResourceFlavor
    priority: PriorityClass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the number of timed requests."""
    parser.add_argument("--repeat", type=int, default=60, help="timed requests per page and size")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fill the database in two steps and time the pages after each."""
    logging.disable(logging.INFO)  # a line per request would hide the result
    world, rng, numbers = _world(), random.Random(SEED), iter(range(1, 10**9))  # noqa: S311  # not a secret
    _add_live(world, rng, numbers)
    results: dict[str, Any] = {}
    p95: dict[int, dict[str, float]] = {}
    for size in SIZES:
        _add_history(world, rng, numbers, size)
        client, pages = _pages(world)
        timed = _timed(client, pages, args.repeat)
        p95[size] = {page: round(float(np.percentile(times, 95)), 1) for page, times in timed.items()}
        results[f"p50_ms_{size}"] = {page: round(float(np.median(times)), 1) for page, times in timed.items()}
        results[f"p95_ms_{size}"] = p95[size]
        results[f"queries_{size}"] = {page: _queries(client, address) for page, address in pages.items()}
    ratios = {page: round(p95[SIZES[1]][page] / p95[SIZES[0]][page], 2) for page in p95[SIZES[0]]}
    results |= {
        "ratios": ratios,
        "p95_ratio": max(ratios.values()),
        "max_queries": max(count for size in SIZES for count in results[f"queries_{size}"].values()),
    }
    about = {"teams": TEAMS, "running": RUNNING, "queued": QUEUED, "events_per_job": EVENTS_PER_JOB}
    results["facts"] = {"sizes": SIZES, "seed": SEED, "repeat": args.repeat, **about}
    return results


def _pages(world: World) -> tuple[Client, dict[str, str]]:
    """Return a signed-in member and the addresses to ask."""
    team = world.teams[0]
    member = world.people[team.pk][0]
    client = Client(SERVER_NAME="localhost")
    client.force_login(member)
    mine = Job.objects.filter(team=team)
    running = mine.filter(state=Job.State.RUNNING).first()
    ended = mine.filter(state=Job.State.FAILED).order_by("id").last()
    assert running
    assert ended
    jobs = reverse("jobs:list")
    return client, {
        "list": jobs,
        "list_failed": f"{jobs}?state=failed",
        "list_all_teams": f"{jobs}?team=all",
        "detail_running": reverse("jobs:detail", args=[running.uid]),
        "detail_ended": reverse("jobs:detail", args=[ended.uid]),
        "home": reverse("home"),
        "queues": reverse("quotas:queues"),
        "queue": reverse("quotas:queue", args=[world.queues[team.pk].pk]),
    }


def _timed(client: Client, pages: dict[str, str], repeat: int) -> dict[str, list[float]]:
    """Return wall times in ms per page, asked in turn so that other load falls on all alike."""
    times: dict[str, list[float]] = {page: [] for page in pages}
    for turn in range(repeat + 3):
        gc.collect()
        for page, address in pages.items():
            start = time.perf_counter()
            response = client.get(address)
            took = (time.perf_counter() - start) * 1e3
            if response.status_code != 200:
                raise AssertionError(f"{address} answered {response.status_code}")
            if turn >= 3:  # the first ones warm caches
                times[page].append(took)
    return times


def _queries(client: Client, address: str) -> int:
    """Return how many queries a page makes; none may count jobs."""
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    statements = [query["sql"] for query in captured.captured_queries]
    counting = [sql for sql in statements if COUNT_OVER_JOBS.search(sql)]
    if counting:
        raise AssertionError(f"{address} counts jobs: {counting[0]}")
    return len(statements)


def _world() -> World:
    teams = [factories.make_team(f"team-{number:02d}") for number in range(TEAMS)]
    flavor = factories.make_flavor("a100")
    queues = {team.pk: factories.make_queue(team, quota={flavor: 64}) for team in teams}
    people = {team.pk: [factories.make_user(password=None) for _ in range(PEOPLE_PER_TEAM)] for team in teams}
    for team in teams:
        for person in people[team.pk]:
            factories.make_membership(person, team)
    clusters = [factories.make_cluster() for _ in range(CLUSTERS)]
    nodes = [factories.make_node(cluster, flavor=flavor) for cluster in clusters for _ in range(NODES_PER_CLUSTER)]
    return World(teams, queues, people, nodes, flavor, factories.make_priority_class())


def _add_live(world: World, rng: random.Random, numbers: Iterator[int]) -> None:
    states = [Job.State.RUNNING] * RUNNING + [Job.State.QUEUED] * QUEUED
    jobs = Job.objects.bulk_create([_job(world, rng, next(numbers), state) for state in states])
    running = jobs[:RUNNING]
    attempts = Attempt.objects.bulk_create(
        [_attempt(job, world.nodes[place % len(world.nodes)]) for place, job in enumerate(running)]
    )
    Allocation.objects.bulk_create(
        [
            _allocation(attempt, rank, world.nodes[place % len(world.nodes)], world.flavor)
            for place, attempt in enumerate(attempts)
            for rank in range(attempt.workers)
        ]
    )


def _add_history(world: World, rng: random.Random, numbers: Iterator[int], size: int) -> None:
    """Bring the jobs up to `size`: some made here, the rest as copies of those by the database, which is faster."""
    last = Job.objects.order_by("-id").values_list("id", flat=True)[0]
    missing = size - last
    made = min(missing, MADE_HERE)
    Job.objects.bulk_create(
        [_job(world, rng, next(numbers), state) for state in rng.choices(ENDED, ENDED_SHARES, k=made)]
    )
    columns = [field.attname for field in Job._meta.concrete_fields if field.attname not in ("id", "uid", "number")]
    values = {"cluster": world.nodes[0].cluster_id, "events": EVENTS_PER_JOB, "after": last}
    with connection.cursor() as cursor:
        cursor.execute(_copies(columns), {"after": last, "copies": missing // made, "missing": missing - made})
        for statement in _HISTORY.split(";"):
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE")


def _copies(columns: list[str]) -> str:
    """Return the statement that copies jobs, each time half an hour later."""
    later = {"created_at", "admitted_at", "started_at", "finished_at"}
    moved = [f"{name} + copy * interval '30 min'" if name in later else f'"{name}"' for name in columns]
    names = ", ".join(f'"{name}"' for name in columns)
    return f"""
        INSERT INTO jobs_job (uid, number, {names})
        SELECT substr(md5(uid || copy), 1, 12), number + copy * 1000000, {", ".join(moved)}
        FROM jobs_job, generate_series(1, %(copies)s) AS copy WHERE id > %(after)s LIMIT %(missing)s
    """  # noqa: S608  # names of columns only


def _job(world: World, rng: random.Random, number: int, state: Job.State) -> Job:
    team = world.teams[number % TEAMS]
    workers = rng.choice([1, 1, 1, 2, 4])
    made = clock.now() - timedelta(seconds=86_400 + rng.randrange(180 * 86_400))
    is_over, is_queued = state in ENDED, state == Job.State.QUEUED
    return Job(
        team=team,
        queue=world.queues[team.pk],
        owner=rng.choice(world.people[team.pk]),
        name=f"train-{number % 97}",
        number=number,
        kind=Job.Kind.INFERENCE if rng.random() < 0.1 else Job.Kind.TRAINING,
        workload="job",
        spec={"name": f"train-{number % 97}", "image": "python:3.11", "workers": workers, "gpus_per_worker": 1},
        labels={"experiment": f"e{number % 41}"},
        priority_class=world.priority,
        priority=world.priority.value,
        workers=workers,
        min_workers=workers,
        gpus_per_worker=1,
        gpus=workers,
        cpu_milli=4_000,
        memory_mib=16_384,
        state=state,
        reason_code="capacity" if is_queued else "",
        reason_numbers={"free": 0, "asked": workers, "flavor": world.flavor.name} if is_queued else {},
        attempts_made=0 if is_queued else 1,
        outcome_code=Job.Outcome.USER_ERROR if state == Job.State.FAILED else "",
        created_at=made,
        admitted_at=None if is_queued else made,
        started_at=None if is_queued else made,
        finished_at=made + timedelta(hours=1) if is_over else None,
    )


def _attempt(job: Job, node: Node) -> Attempt:
    return Attempt(
        job=job,
        number=1,
        cluster_id=node.cluster_id,
        namespace="bench",
        object_name=f"m-{job.uid}-a1",
        workers=job.workers,
        level="node",
        resource_name="nvidia.com/gpu",
        step=Attempt.Step.RUNNING,
        step_at=job.created_at,
        due_at=job.created_at,
        started_at=job.created_at,
    )


def _allocation(attempt: Attempt, rank: int, node: Node, flavor: ResourceFlavor) -> Allocation:
    return Allocation(
        attempt=attempt,
        rank=rank,
        node=node,
        node_uid=node.uid,
        flavor=flavor,
        queue_id=attempt.job.queue_id,
        gpus=1,
        cpu_milli=4_000,
        memory_mib=16_384,
        made_at=attempt.created_at,
    )
