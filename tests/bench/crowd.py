"""Rows of a portal that is at work, made by a process of the portal's own: `fill(server, gangs, pending)`.

The nodes, pods and Jobs come from the server of `tests.bench.supply`, through the watcher's own mirror; the runs on
them are copies of one run that went through the portal's own checks. What they hold is held by the accounting of
admissions. One cycle has told every waiting run why it waits. Then the portal is away for ten minutes.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.forms.models import model_to_dict

from clusters.k8s.gateway import Gateway
from clusters.models import Cluster, Node, ObservedPod, ResourceFlavor, TopologyLevel
from clusters.watch.inbox import Batch
from clusters.watch.inventory import Catalogue, FlavorSelector
from clusters.watch.mirror import Mirror, reader_for, sources
from clusters.watch.reading import FORMS
from jobs.accounting import drift
from jobs.engine import cycle
from jobs.jobspec.checks import parse
from jobs.models import Allocation, Attempt, Cycle, Decision, Job, JobEvent, JobName
from jobs.services import holding, submit
from portal.core import clock
from portal.core.models import new_uid
from portal.identity.models import Team, User
from quotas.models import Quota
from tests.bench.supply import GPUS, PRODUCT

CLUSTER = "busy"
WORKERS = 2  # of a running gang
PENDING_WORKERS = (1, 2, 4, 8)  # with eight GPUs each
AWAY = timedelta(minutes=10)
BATCH = 1_000
LEVEL = ("rack", "topology/rack")


def fill(server: str, gangs: int, pending: int) -> None:
    """Make the rows; print what a check finds wrong with them (nothing)."""
    cluster = _mirrored(server)
    nodes = list(Node.objects.filter(cluster=cluster))
    # More than there is: what waits, waits for GPUs.
    Quota.objects.update(nominal=16 * len(nodes))
    with transaction.atomic():
        _run_gangs(cluster, nodes, gangs)
        _queue(pending)
    cycle.run_once()
    _go_away()
    print(json.dumps({"findings": [finding.as_document() for finding in drift.findings()]}))


def _mirrored(server: str) -> Cluster:
    """Register the cluster and write what it tells of itself."""
    now = clock.now()
    cluster = Cluster.objects.create(name=CLUSTER, server=server, heard_at=now, synced_at=now)
    TopologyLevel.objects.create(cluster=cluster, depth=0, name=LEVEL[0], label_key=LEVEL[1])
    flavors = ResourceFlavor.objects.filter(label_value=PRODUCT)
    selectors = (FlavorSelector(f.pk, f.name, f.label_key, f.label_value, f.resource_name) for f in flavors)
    catalogue = Catalogue(tuple(selectors), (LEVEL[1],))
    reader, mirror, batch = reader_for(catalogue), Mirror(cluster, catalogue), Batch()
    with Gateway(cluster) as gateway:
        for source in sources():
            read, form = partial(reader.read, source.kind), FORMS[source.kind]
            items, _version = gateway.read_list(source.kind, form, read, labels=source.labels)
            batch.add_list(source.kind, items)
    mirror.load()
    mirror.apply(batch)
    return cluster


def _run_gangs(cluster: Cluster, nodes: Sequence[Node], count: int) -> None:
    now = clock.now()
    model = _model("running", workers=WORKERS, gpus=GPUS)
    admitted, started = now - timedelta(hours=2), now - timedelta(hours=1)
    lived = {"state": Job.State.RUNNING, "attempts_made": 1, "admitted_at": admitted, "started_at": started}
    # Named as the pods that the server has.
    jobs = [_copy(model, number, uid=f"run-{number}", version=4, **lived) for number in range(count)]
    Job.objects.bulk_create(jobs, batch_size=BATCH)
    attempts = [_attempt(cluster, job, started, now) for job in jobs]
    Attempt.objects.bulk_create(attempts, batch_size=BATCH)
    place = {node.name: node for node in nodes}
    flavor = ResourceFlavor.objects.get(label_value=PRODUCT)
    by_gang = {attempt.object_name: attempt for attempt in attempts}
    pods = ObservedPod.objects.filter(cluster=cluster, run__in=by_gang).values_list("run", "rank", "node_name")
    holding.hold([_allocation(by_gang[run], rank or 0, place[name], flavor, admitted) for run, rank, name in pods])
    decided = Cycle.objects.create(started_at=admitted, pending=count, admitted=count, hosts=len(nodes), apply_ms=1)
    Decision.objects.bulk_create((Decision(cycle=decided, job=job, is_admitted=True) for job in jobs), batch_size=BATCH)
    steps = (("queued", admitted), ("admitted", admitted), ("starting", admitted), ("running", started))
    JobEvent.objects.bulk_create(
        (JobEvent(job=job, at=at, code=code) for job in jobs for code, at in steps), batch_size=BATCH
    )
    JobName.objects.create(team=model.team, name=model.name, last_number=count)


def _queue(count: int) -> None:
    models = [_model("waiting", workers=workers, gpus=8) for workers in PENDING_WORKERS]
    jobs = [_copy(models[number % len(models)], number, uid=new_uid()) for number in range(count)]
    Job.objects.bulk_create(jobs, batch_size=BATCH)
    JobEvent.objects.bulk_create(
        (JobEvent(job=job, at=job.created_at, code="queued") for job in jobs), batch_size=BATCH
    )
    JobName.objects.create(team=models[0].team, name=models[0].name, last_number=count)


def _model(name: str, *, workers: int, gpus: int) -> Job:
    """A run as the portal would store it, after all of its checks."""
    document = {
        "name": name,
        "kind": "training",
        "image": "registry.example/trainer:1.0",
        "workers": workers,
        "gpus_per_worker": gpus,
        "accelerators": ["h100"],
        "team": "vision",
        "cpu": {"request": "16"},
        "memory": {"request": "128Gi"},
    }
    job = submit.job_of(submit.resolve(parse(document), team=Team.objects.get(slug="vision")))
    job.owner = User.objects.get(username="alice")
    return job


def _copy(model: Job, number: int, **columns: object) -> Job:
    keys = {"team": model.team, "queue": model.queue, "owner": model.owner, "priority_class": model.priority_class}
    values = model_to_dict(model, exclude=[*keys, "id", "uid", "number", "parent", *columns])
    return Job(**values, **keys, number=number + 1, **columns)


def _attempt(cluster: Cluster, job: Job, started: datetime, now: datetime) -> Attempt:
    return Attempt(
        job=job,
        number=1,
        cluster=cluster,
        namespace="team",
        object_name=job.uid,
        object_uid=f"job-{job.number - 1}",
        workers=job.workers,
        resource_name="nvidia.com/gpu",
        step=Attempt.Step.RUNNING,
        step_at=started,
        due_at=now,
        looked_at=now,
        started_at=started,
    )


def _allocation(attempt: Attempt, rank: int, node: Node, flavor: ResourceFlavor, at: datetime) -> Allocation:
    job = attempt.job
    return Allocation(
        attempt=attempt,
        rank=rank,
        node=node,
        node_uid=node.uid,
        flavor=flavor,
        queue_id=job.queue_id,
        gpus=job.gpus_per_worker,
        cpu_milli=job.cpu_milli,
        memory_mib=job.memory_mib,
        made_at=at,
    )


def _go_away() -> None:
    """Let all signs of life be as old as the absence."""
    past = clock.now() - AWAY
    Cluster.objects.filter(name=CLUSTER).update(heard_at=past, synced_at=past)
    Attempt.objects.update(due_at=past, looked_at=past)
    ObservedPod.objects.update(seen_at=past - timedelta(minutes=1))
