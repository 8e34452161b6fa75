"""Where jobs are: attempts, the nodes of their ranks, the state of their pods; for many jobs in a few queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from clusters.models import ObservedPod
from jobs.models import Allocation, Attempt, Job


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One rank of an attempt: its node, and its pod as last seen (empty words: no pod yet)."""

    rank: int
    node: str
    labels: Mapping[str, str]
    gpus: int
    flavor: str
    phase: str
    is_gated: bool
    is_ready: bool
    pod: str
    reason: str
    message: str
    restarts: int
    exit_code: int | None
    checkpoint_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """One attempt with its ranks, in rank order."""

    attempt: Attempt
    ranks: tuple[RankPlace, ...]

    @property
    def ready(self) -> int:
        """How many ranks are up."""
        return sum(rank.is_ready for rank in self.ranks)

    @property
    def flavor(self) -> str:
        """The type of its GPUs."""
        return self.ranks[0].flavor if self.ranks else ""

    @property
    def checkpoint_at(self) -> datetime | None:
        """When it last told of a checkpoint."""
        return max((rank.checkpoint_at for rank in self.ranks if rank.checkpoint_at), default=None)


def places_of(jobs: Iterable[Job], *, newest_only: bool = True) -> dict[int, list[AttemptPlace]]:
    """Return the attempts of each job, newest first, in three queries."""
    by_id = {job.pk: job for job in jobs}
    rows = Attempt.objects.filter(job__in=by_id).select_related("cluster").order_by("job_id", "-number")
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in rows:
        if not newest_only or not attempts[attempt.job_id]:
            attempts[attempt.job_id].append(attempt)
    kept = [attempt for group in attempts.values() for attempt in group]
    places = _allocations(kept)
    pods = _pods([job.uid for job in by_id.values()])
    return {
        job_id: [
            AttemptPlace(
                attempt,
                tuple(_rank(row, pods.get((by_id[job_id].uid, attempt.number), [])) for row in places[attempt.pk]),
            )
            for attempt in group
        ]
        for job_id, group in attempts.items()
    }


def _allocations(attempts: list[Attempt]) -> dict[int, list[Allocation]]:
    # While an attempt lives, a place that was given back is nobody's any more; of one that ended all are shown.
    shown = Q(released_at=None) | Q(attempt__step=Attempt.Step.ENDED)
    rows = Allocation.objects.filter(shown, attempt__in=attempts).select_related("node", "flavor")
    groups: dict[int, dict[int, Allocation]] = defaultdict(dict)
    for row in rows.order_by("pk"):
        # A rank of a service may have had several places; the last one counts.
        groups[row.attempt_id][row.rank] = row
    return defaultdict(list, {key: [by_rank[r] for r in sorted(by_rank)] for key, by_rank in groups.items()})


def _pods(runs: list[str]) -> dict[tuple[str, int], list[ObservedPod]]:
    groups: dict[tuple[str, int], list[ObservedPod]] = defaultdict(list)
    for pod in ObservedPod.objects.filter(run__in=runs).order_by("created_at", "pk"):
        groups[pod.run, pod.attempt].append(pod)
    return groups


def _rank(row: Allocation, pods: list[ObservedPod]) -> RankPlace:
    # A gang's pod is known by its rank, a replica by the pod that was given the place.
    pod = next(
        (pod for pod in reversed(pods) if (pod.uid == row.pod_uid if row.pod_uid else pod.rank == row.rank)), None
    )
    return RankPlace(
        rank=row.rank,
        node=row.node.name,
        labels=row.node.labels,
        gpus=row.gpus,
        flavor=row.flavor.name,
        phase=pod.phase if pod else "",
        is_gated=pod.is_gated if pod else False,
        is_ready=bool(pod and pod.is_ready and pod.gone_at is None),
        pod=pod.name if pod else "",
        reason=pod.reason if pod else "",
        message=pod.message if pod else "",
        restarts=pod.restarts if pod else 0,
        exit_code=pod.exit_code if pod else None,
        checkpoint_at=pod.checkpoint_at if pod else None,
    )
