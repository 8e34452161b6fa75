"""A job's row -> the scheduler's frozen view of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.engine.taints import TaintSets
from jobs.jobspec.beside import most_beside_one
from jobs.models import Job
from jobs.scheduler.types import CLUSTER, Reason, ReasonCode, SpreadPolicy, TopologyMode, Workload


@dataclass(frozen=True, slots=True)
class Indices:
    """Where the snapshot keeps what a job's row names by key."""

    clusters: Mapping[int, int]
    flavors: Mapping[int, int]
    queues: Mapping[int, int]
    nodes: Mapping[int, int]
    taints: TaintSets
    # Flavors that a queue has quota for, in the administrator's order: what a job without a wish tries.
    quota_flavors: Mapping[int, tuple[int, ...]]
    resource_names: tuple[str, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Home:
    """Where a service has replicas already: its cluster, and the device that its pods ask for."""

    cluster_id: int
    resource_name: str


def workload_of(job: Job, missing: int, home: Home | None, indices: Indices) -> Workload:
    """Return the view of a job that wants `missing` more workers.

    home: where a service has replicas already; it grows only there.
    """
    grows = job.state != Job.State.QUEUED
    more = most_beside_one(job.spec, job.workers)
    clusters = [home.cluster_id] if home else job.cluster_ids
    return Workload(
        id=job.uid,
        queue=indices.queues[job.queue_id],
        priority=job.priority,
        submitted_at=job.created_at.timestamp(),
        workers=missing,
        min_workers=1 if grows else job.min_workers,
        gpus_per_worker=job.gpus_per_worker,
        flavors=_flavors(job, home, indices),
        cpu_milli=job.cpu_milli + more.cpu_milli,
        memory_mib=job.memory_mib + more.memory_mib,
        topology=TopologyMode(job.topology_mode),
        level=job.topology_level or CLUSTER,
        spread=SpreadPolicy(job.spread_policy),
        is_service=job.is_service,
        clusters=_known(clusters, indices.clusters),
        excluded_hosts=_known(job.excluded_node_ids(indices.now), indices.nodes),
        tolerated=indices.taints.tolerated(job.tolerations),
        blocked=_blocked(job),
    )


def _flavors(job: Job, home: Home | None, indices: Indices) -> tuple[int, ...]:
    wished = _known(job.flavor_ids, indices.flavors) if job.flavor_ids else indices.quota_flavors.get(job.queue_id, ())
    if home is None:
        return wished
    return tuple(flavor for flavor in wished if indices.resource_names[flavor] == home.resource_name)


def _known(keys: Sequence[int], index: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(index[key] for key in keys if key in index)


def _blocked(job: Job) -> Reason | None:
    if job.queue.is_paused:
        return Reason(ReasonCode.BLOCKED, {"cause": "queue_paused", "queue": job.queue.name})
    return None
