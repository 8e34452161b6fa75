"""Give each new schedule its cluster: where a run of it would start now, or where it would if all were free."""

from dataclasses import replace

import numpy as np
from django.db import transaction
from django.db.models import F, Max, QuerySet

from jobs import transitions
from jobs.engine.apply import StaleCycleError, object_name
from jobs.engine.cycle_lease import LEASE
from jobs.engine.snapshot import Loaded
from jobs.engine.workloads import workload_of
from jobs.models import Attempt, Job
from jobs.scheduler.decide import decide
from jobs.scheduler.types import Admission, Reason, Snapshot
from jobs.services.schedules import run_of
from jobs.transitions import Event
from portal.core import clock, lease
from portal.core.enqueue import enqueue


def waiting() -> QuerySet[Job]:
    """The schedules without a cluster."""
    rows = Job.objects.filter(state=Job.State.QUEUED, workload="cronjob")
    return rows.select_related("team", "queue", "owner", "priority_class").order_by("pk")


def seat_schedules(loaded: Loaded, token: int) -> int:
    """Give each its cluster; return how many got one. One that would fit nowhere says why, and waits."""
    try:
        seated = sum(_seat(loaded, schedule, token) for schedule in waiting())
    except StaleCycleError:
        return 0
    if seated:
        enqueue("jobs.tasks.reconcile")
    return seated


def _seat(loaded: Loaded, schedule: Job, token: int) -> bool:
    found = _choice(loaded, schedule)
    if isinstance(found, Reason):
        stored = Job.objects.filter(pk=schedule.pk, state=Job.State.QUEUED)
        numbers = dict(found.numbers)
        if (schedule.reason_code, schedule.reason_numbers) != (found.code.value, numbers):
            stored.update(reason_code=found.code.value, reason_numbers=numbers, version=F("version") + 1)
            transitions.announce(schedule)
        return False
    with transaction.atomic():
        if not lease.hold_for_write(LEASE, token):
            raise StaleCycleError
        return _start(loaded, schedule, found)


def _choice(loaded: Loaded, schedule: Job) -> Admission | Reason:
    run = run_of(schedule)
    run.uid, run.created_at = schedule.uid, schedule.created_at
    workload = workload_of(run, run.workers, None, loaded.indices)
    alone = replace(loaded.snapshot, workloads=(workload,))
    for world in (alone, _idle(alone)):
        outcome = decide(world)
        if outcome.admissions:
            return outcome.admissions[0]
    return outcome.waits[0].reason


def _idle(world: Snapshot) -> Snapshot:
    """The same hosts and quota with nothing in use."""
    hosts, offers, quota = world.hosts, world.offers, world.quota
    return replace(
        world,
        hosts=replace(hosts, cpu_milli=hosts.cpu_milli_total, memory_mib=hosts.memory_mib_total, pods=hosts.pods_total),
        offers=replace(offers, free=offers.total),
        quota=replace(quota, used=np.zeros_like(quota.used)),
    )


def _start(loaded: Loaded, schedule: Job, admission: Admission) -> bool:
    now = clock.now()
    number = (schedule.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    cluster = loaded.snapshot.clusters[admission.placement.cluster]
    moved = transitions.move(
        schedule,
        frm=Job.State.QUEUED,
        to=Job.State.ADMITTED,
        event=Event("schedule_seated", {"cluster": cluster}),
        admitted_at=now,
        attempts_made=number,
        reason_code="",
        reason_numbers={},
    )
    if not moved:
        return False
    Attempt.objects.create(
        job=schedule,
        number=number,
        cluster_id=loaded.cluster_ids[admission.placement.cluster],
        namespace=schedule.team.namespace,
        object_name=object_name(schedule, number),
        workers=admission.workers,
        resource_name=loaded.resource_names[admission.placement.flavor],
        step_at=now,
        due_at=now,
    )
    return True
