"""What one step of the driver looks at: the wanted rows and the observed rows of one attempt."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusters.models import Cluster, NodeFault, ObservedObject, ObservedPod
from jobs.dispatch.faults import Fallen, fallen, is_emptied, load_faults
from jobs.jobspec.beside import beside
from jobs.models import Allocation, Attempt, Job
from portal.core import clock

TERMINAL = frozenset({"Succeeded", "Failed"})
KIND_OF_WORKLOAD: Mapping[str, str] = {
    "job": "jobs",
    "cronjob": "cronjobs",
    "pod": "pods",
    "statefulset": "statefulsets",
    "deployment": "deployments",
}


@dataclass(frozen=True, slots=True)
class View:
    """One attempt as of `now`. `pods` holds those that are gone too, newest last."""

    attempt: Attempt
    job: Job
    cluster: Cluster
    held: tuple[Allocation, ...]
    pods: tuple[ObservedPod, ...]
    object: ObservedObject | None
    # The Jobs of further sets of pods; of a schedule, the Jobs that it made and that no run has begun with.
    others: tuple[ObservedObject, ...]
    # Faults of the nodes that it holds, by node.
    faults: Mapping[int, Sequence[NodeFault]]
    now: datetime

    @property
    def kind(self) -> str:
        """The kind of object that the attempt is on its cluster, as the gateway names it."""
        return KIND_OF_WORKLOAD[self.job.workload]

    @property
    def is_adopted(self) -> bool:
        """Whether the object was made by a schedule on the cluster: so begins each run of one, once."""
        return is_adopted(self.job, self.attempt)

    @property
    def size(self) -> int:
        """All ranks of a gang: its workers, and the pods of further sets."""
        return self.attempt.workers + len(beside(self.job.spec))

    @property
    def lone_pod(self) -> ObservedPod | None:
        """The pod that the attempt is, where it is one, as it was last seen."""
        is_pod = self.kind == "pods" and self.attempt.object_uid
        return next((pod for pod in self.pods if is_pod and pod.uid == self.attempt.object_uid), None)

    @property
    def present(self) -> tuple[ObservedPod, ...]:
        """The pods that exist."""
        return tuple(pod for pod in self.pods if pod.gone_at is None)

    @property
    def step_age_s(self) -> float:
        """Seconds in this step; never negative, should the clock have been set back."""
        return max(0.0, (self.now - self.attempt.step_at).total_seconds())

    @property
    def fallen(self) -> Fallen | None:
        """The place whose node failed, if one did."""
        return fallen(self.held, self.faults, self.now, run=self.job.uid)

    @property
    def checkpoint_at(self) -> datetime | None:
        """When its newest checkpoint was written, as far as its pods told."""
        return max((pod.checkpoint_at for pod in self.pods if pod.checkpoint_at), default=None)

    @property
    def in_maintenance(self) -> Allocation | None:
        """A place whose node is emptied now for its maintenance."""
        return next((row for row in self.held if is_emptied(row, self.now)), None)

    def allocation_of(self, rank: int | None) -> Allocation | None:
        """The place of a rank."""
        return next((row for row in self.held if row.rank == rank), None)


def is_adopted(job: Job, attempt: Attempt) -> bool:
    """Whether the attempt is the Job that a schedule made for this run."""
    return bool(job.adopts) and attempt.object_name == job.adopted["name"]


def load_views(attempts: Sequence[Attempt]) -> list[View]:
    """Read what belongs to the attempts in a few queries."""
    now = clock.now()
    held = _grouped(
        Allocation.objects.filter(attempt__in=attempts, released_at=None).select_related("node").order_by("rank")
    )
    runs = [attempt.job.uid for attempt in attempts]
    pods: dict[tuple[int, str, int], list[ObservedPod]] = defaultdict(list)
    for pod in ObservedPod.objects.filter(run__in=runs).order_by("created_at", "pk"):
        pods[pod.cluster_id, pod.run, pod.attempt].append(pod)
    objects: dict[tuple[int, str, int], list[ObservedObject]] = defaultdict(list)
    for row in ObservedObject.objects.filter(run__in=runs, gone_at=None).order_by("pk"):
        objects[row.cluster_id, row.run, row.attempt].append(row)
    faults = load_faults((row.node_id for rows in held.values() for row in rows), now)
    views = []
    for attempt in attempts:
        key = (attempt.cluster_id, attempt.job.uid, attempt.number)
        views.append(
            View(
                attempt=attempt,
                job=attempt.job,
                cluster=attempt.cluster,
                held=tuple(held[attempt.pk]),
                pods=tuple(pods[key]),
                object=next((row for row in reversed(objects[key]) if row.name == attempt.object_name), None),
                others=tuple(row for row in objects[key] if row.name != attempt.object_name),
                faults=faults,
                now=now,
            )
        )
    return views


def _grouped(rows: Iterable[Allocation]) -> dict[int, list[Allocation]]:
    groups: dict[int, list[Allocation]] = defaultdict(list)
    for row in rows:
        groups[row.attempt_id].append(row)
    return groups
