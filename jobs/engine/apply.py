"""Decisions -> rows, guarded: the token of the lease, the state of the job, the quota, the nodes.

Each admission is a transaction of its own. One that a guard refuses changes nothing; its job waits for the next cycle.
"""

from collections.abc import Sequence

import structlog
from django.db import transaction
from django.db.models import F, Max

from clusters.models import Dispatch
from jobs import transitions
from jobs.engine import records
from jobs.engine.cycle_lease import LEASE
from jobs.engine.snapshot import Loaded
from jobs.jobspec.beside import beside, places
from jobs.models import Allocation, Attempt, Cycle, Decision, Job
from jobs.scheduler.types import Admission, Outcome
from jobs.services import holding, span
from jobs.transitions import Event
from portal.core import clock, lease
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError

log = structlog.get_logger(__name__)

PREFIX = "m"


class StaleCycleError(Exception):
    """The lease went to another cycle: nothing more of this one may be applied."""


def apply_outcome(cycle: Cycle, loaded: Loaded, outcome: Outcome, token: int) -> int:
    """Apply what was decided; return how many admissions took hold."""
    done = 0
    try:
        for admission in outcome.admissions:
            done += _admit(cycle, loaded, admission, token)
        records.store_waits(cycle, loaded, outcome.waits)
    except StaleCycleError:
        log.warning("stale_cycle", number=cycle.pk)
    if done:
        enqueue("jobs.tasks.reconcile")
    return done


def _admit(cycle: Cycle, loaded: Loaded, admission: Admission, token: int) -> bool:
    job = loaded.jobs[admission.workload]
    try:
        with transaction.atomic():
            if not lease.hold_for_write(LEASE, token):
                raise StaleCycleError
            if job.state == Job.State.QUEUED:
                return _start(cycle, loaded, job, admission)
            return _grow(loaded, job, admission)
    except DomainError as refused:
        log.info("admission_refused", job=job.uid, code=refused.code, detail=refused.message)
        return False


def _start(cycle: Cycle, loaded: Loaded, job: Job, admission: Admission) -> bool:
    now = clock.now()
    number = (job.attempts.aggregate(last=Max("number"))["last"] or 0) + 1
    moved = transitions.move(
        job,
        frm=Job.State.QUEUED,
        to=Job.State.ADMITTED,
        event=Event("admitted", _placement(loaded, admission) | {"cycle": cycle.pk}),
        admitted_at=now,
        attempts_made=number,
        reason_code="",
        reason_numbers={},
        position=None,
        gpus_ahead=None,
    )
    if not moved:
        return False
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        cluster_id=loaded.cluster_ids[admission.placement.cluster],
        namespace=job.team.namespace,
        object_name=job.adopted["name"] if _begins_adopted(job) else object_name(job, number),
        # Pods are pinned at their birth by the index that the Job controller gives them.
        dispatch=loaded.dispatches[admission.placement.cluster] if _is_one_job(job) else Dispatch.GATES,
        is_grouped=loaded.groupings[admission.placement.cluster],
        workers=admission.workers,
        level=admission.placement.level,
        resource_name=loaded.resource_names[admission.placement.flavor],
        step_at=now,
        due_at=now,
    )
    workers = _allocations(loaded, job, attempt, admission, ranks=range(admission.workers))
    holding.hold([*workers, *_beside(job, workers)])
    Decision.objects.create(cycle=cycle, job=job, is_admitted=True, numbers=_placement(loaded, admission))
    return True


def _grow(loaded: Loaded, job: Job, admission: Admission) -> bool:
    """Give a running service more replicas, where its attempt still lives and still wants them."""
    attempt = (
        Attempt.objects.select_for_update(no_key=True, of=("self",))
        .filter(job=job, stop_code="", job__workers__gte=job.workers)
        .exclude(step__in=(Attempt.Step.STOPPING, Attempt.Step.ENDED))
        .first()
    )
    if attempt is None:
        return False
    taken = set(attempt.allocations.filter(released_at=None).values_list("rank", flat=True))
    free_ranks = [rank for rank in range(job.workers) if rank not in taken][: admission.workers]
    holding.hold(_allocations(loaded, job, attempt, admission, ranks=free_ranks))
    Attempt.objects.filter(pk=attempt.pk).update(due_at=clock.now())
    span.update(attempt)
    Job.objects.filter(pk=job.pk).update(reason_code="", reason_numbers={}, version=F("version") + 1)
    transitions.tell(job, Event("grown", {"replicas": len(free_ranks)}))
    return True


def _allocations(
    loaded: Loaded, job: Job, attempt: Attempt, admission: Admission, *, ranks: Sequence[int]
) -> list[Allocation]:
    flavor_id = loaded.flavor_ids[admission.placement.flavor]
    now = clock.now()
    return [
        Allocation(
            attempt=attempt,
            rank=rank,
            node_id=loaded.node_ids[host],
            node_uid=loaded.node_uids[host],
            flavor_id=flavor_id,
            queue_id=job.queue_id,
            gpus=job.gpus_per_worker,
            cpu_milli=job.cpu_milli,
            memory_mib=job.memory_mib,
            made_at=now,
        )
        for rank, host in zip(ranks, admission.placement.hosts, strict=False)
    ]


def object_name(job: Job, number: int) -> str:
    """Return what the n-th attempt of a job is called on its cluster."""
    return f"{PREFIX}-{job.uid}-a{number}"


def _begins_adopted(job: Job) -> bool:
    """Whether its first attempt is the Job that its schedule made. A second one would have to be made anew."""
    return bool(job.adopts) and not job.attempts_made


def _is_one_job(job: Job) -> bool:
    return job.workload == "job" and not job.spec.get("pod_sets") and not _begins_adopted(job)


def _beside(job: Job, workers: Sequence[Allocation]) -> list[Allocation]:
    """What the pods of further sets hold, each on the node of the worker that it comes beside."""
    pods = beside(job.spec)
    nodes = places([(row.node_id, row.node_uid, row.flavor_id) for row in workers], len(pods))[len(workers) :]
    return [
        Allocation(
            attempt=workers[0].attempt,
            rank=rank,
            node_id=node_id,
            node_uid=node_uid,
            flavor_id=flavor_id,
            queue_id=job.queue_id,
            gpus=0,
            cpu_milli=pod.cpu_milli,
            memory_mib=pod.memory_mib,
            made_at=workers[0].made_at,
        )
        for rank, (pod, (node_id, node_uid, flavor_id)) in enumerate(zip(pods, nodes, strict=True), start=len(workers))
    ]


def _placement(loaded: Loaded, admission: Admission) -> dict[str, object]:
    place = admission.placement
    return {
        "cluster": loaded.snapshot.clusters[place.cluster],
        "level": place.level,
        "flavor": loaded.snapshot.flavors[place.flavor],
        "workers": admission.workers,
        "nodes": [loaded.snapshot.hosts.ids[host] for host in place.hosts],
    }
