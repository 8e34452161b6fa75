"""Where jobs are: attempts, the nodes of their ranks, the state of their pods; for many jobs in a few queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q
from django.db.models.functions import JSONObject

from clusters.models import ObservedPod
from jobs.models import Allocation, Attempt, Job

Held = dict[str, Any]
# One allocation with the names of its node and flavor, so that it comes with its attempt.
_HELD = JSONObject(
    rank="rank",
    gpus="gpus",
    pod_uid="pod_uid",
    node="node__name",
    is_node_ready="node__is_ready",
    labels="node__labels",
    flavor="flavor__name",
    link="flavor__link",
)


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One rank of an attempt: its node, and its pod as last seen (empty words: no pod yet)."""

    rank: int
    node: str
    is_node_ready: bool
    labels: Mapping[str, str]
    gpus: int
    flavor: str
    link: str
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
    def link(self) -> str:
        """The link between the GPUs of one of its nodes, as its flavor says."""
        return self.ranks[0].link if self.ranks else ""

    @property
    def checkpoint_at(self) -> datetime | None:
        """When it last told of a checkpoint."""
        return max((rank.checkpoint_at for rank in self.ranks if rank.checkpoint_at), default=None)


def places_of(jobs: Iterable[Job], *, newest_only: bool = True) -> dict[int, list[AttemptPlace]]:
    """Return the attempts of each job, newest first, in two queries."""
    by_id = {job.pk: job for job in jobs}
    pods = _pods([job.uid for job in by_id.values()])
    places: dict[int, list[AttemptPlace]] = defaultdict(list)
    for attempt, held in _attempts(by_id, newest_only=newest_only):
        seen = pods.get((by_id[attempt.job_id].uid, attempt.number), [])
        places[attempt.job_id].append(AttemptPlace(attempt, tuple(_rank(one, seen) for one in held)))
    return dict(places)


def _attempts(job_ids: Iterable[int], *, newest_only: bool) -> Iterator[tuple[Attempt, list[Held]]]:
    """Yield the attempts, newest first, each with what its ranks hold, in the order of the ranks."""
    rows = Attempt.objects.filter(job__in=job_ids)
    if newest_only:
        rows = Attempt.objects.filter(pk__in=rows.order_by("job_id", "-number").distinct("job_id").values("pk"))
    # While an attempt lives, a place that was given back is nobody's any more; of one that ended all are shown.
    shown = Q(released_at=None) | Q(attempt__step=Attempt.Step.ENDED)
    held = Allocation.objects.filter(shown, attempt=OuterRef("pk")).order_by("pk").values_list(_HELD)
    for attempt in rows.select_related("cluster").annotate(held=ArraySubquery(held)).order_by("job_id", "-number"):
        # A rank of a service may have had several places; the last one counts.
        by_rank = {one["rank"]: one for one in attempt.held}
        yield attempt, [by_rank[rank] for rank in sorted(by_rank)]


def _pods(runs: list[str]) -> dict[tuple[str, int], list[ObservedPod]]:
    groups: dict[tuple[str, int], list[ObservedPod]] = defaultdict(list)
    for pod in ObservedPod.objects.filter(run__in=runs).order_by("created_at", "pk"):
        groups[pod.run, pod.attempt].append(pod)
    return groups


def _rank(held: Held, pods: list[ObservedPod]) -> RankPlace:
    rank, uid = held["rank"], held["pod_uid"]
    # A gang's pod is known by its rank, a replica by the pod that was given the place.
    pod = next((pod for pod in reversed(pods) if (pod.uid == uid if uid else pod.rank == rank)), None)
    return RankPlace(
        rank=rank,
        node=held["node"],
        is_node_ready=held["is_node_ready"],
        labels=held["labels"],
        gpus=held["gpus"],
        flavor=held["flavor"],
        link=held["link"],
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
