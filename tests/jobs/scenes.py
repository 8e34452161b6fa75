"""Jobs as they stand after some time: with a place, pods, an end. Rows only; the driver is tested elsewhere."""

from dataclasses import dataclass
from datetime import timedelta

from clusters.models import Cluster, Node, ObservedPod, PersistentClaim, ResourceFlavor, TopologyLevel
from jobs.models import Allocation, Attempt, Job
from portal.core import clock
from portal.identity.models import Team, User
from quotas.models import Queue
from tests.factories import make_cluster, make_flavor, make_job, make_node, make_priority_class, make_queue

RACK = "topology.example/rack"


@dataclass(frozen=True)
class Supply:
    """One cluster of two racks with two nodes of eight GPUs each, and the team's queue with a quota of 32."""

    cluster: Cluster
    flavor: ResourceFlavor
    queue: Queue


def make_supply(team: Team) -> Supply:
    """Make the cluster, the queue of the team, its claims and two priorities."""
    flavor = make_flavor("h100", title="H100 80GB")
    cluster = make_cluster("sim-east")
    TopologyLevel.objects.create(cluster=cluster, depth=0, name="rack", label_key=RACK)
    for number in range(4):
        make_node(cluster, flavor=flavor, name=f"n{number}", labels={RACK: f"r{number // 2}"})
    for claim, modes in {"training-data": ["ReadWriteOnce"], "shared": ["ReadWriteMany"]}.items():
        PersistentClaim.objects.create(cluster=cluster, namespace=team.namespace, name=claim, access_modes=modes)
    make_priority_class("research", 10_000, is_default=True)
    make_priority_class("development", 100)
    return Supply(cluster, flavor, make_queue(team, quota={flavor: 32}, name="vision"))


SPEC = {"name": "train", "team": "vision", "kind": "training", "workload": "job", "image": "team/torch:2.9"}


def make_placed(team: Team, owner: User, supply: Supply, *, state: str = "running", **fields: object) -> Job:
    """Make a run of two workers with eight GPUs each, in one rack, with a pod for each rank."""
    now = clock.now()
    values = {"workers": 2, "gpus_per_worker": 8, "spec": SPEC, "state": state, "started_at": now, **fields}
    job = make_job(team, owner, queue=supply.queue, **values)
    place(job, supply)
    return job


def place(job: Job, supply: Supply) -> Attempt:
    """Give a job its first attempt, with nodes and pods for all of its ranks."""
    now = clock.now()
    attempt = Attempt.objects.create(
        job=job,
        number=1,
        cluster=supply.cluster,
        namespace=job.team.namespace,
        object_name=f"m-{job.uid}-a1",
        workers=job.workers,
        level="rack",
        resource_name="nvidia.com/gpu",
        step="ended" if job.is_final else "running",
        step_at=now,
        due_at=now + timedelta(hours=1),
        started_at=now,
    )
    for rank, node in enumerate(Node.objects.order_by("name")[: job.workers]):
        Allocation.objects.create(
            attempt=attempt,
            rank=rank,
            node=node,
            node_uid=node.uid,
            flavor=supply.flavor,
            queue_id=supply.queue.pk,
            gpus=job.gpus_per_worker,
            cpu_milli=0,
            memory_mib=0,
            made_at=now,
            released_at=now if job.is_final else None,
        )
        make_pod(job, attempt, rank, node)
    return attempt


def make_pod(job: Job, attempt: Attempt, rank: int, node: Node, **fields: object) -> ObservedPod:
    """Make the pod of a rank as it was seen last."""
    values = {
        "cluster": attempt.cluster,
        "uid": f"pod-{job.uid}-{rank}",
        "namespace": attempt.namespace,
        "name": f"{attempt.object_name}-{rank}-abcde",
        "run": job.uid,
        "attempt": attempt.number,
        "rank": rank,
        "node_name": node.name,
        "phase": "Running",
        "is_ready": True,
        "resource_version": "1",
        "seen_at": clock.now(),
        **fields,
    }
    return ObservedPod.objects.create(**values)
