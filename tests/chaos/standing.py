"""What must hold after every short step, whatever happened: the books, the cluster, and what people are told."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.db.models import F, Sum

from clusters.models import NodeAccelerator
from jobs.accounting import drift
from jobs.models import Allocation, Attempt, Job
from tests.chaos.short import Ground

RUN, ATTEMPT = "muster.internal/run", "muster.internal/attempt"
INDEX = "batch.kubernetes.io/job-completion-index"
OVER = ("Succeeded", "Failed")
# It compares with the mirror, which is behind the cluster by a moment, and further while the cluster is away.
NOT_YET = "running_without_pod"
Wrong = tuple[str, str, str]


def wrong_now(ground: Ground) -> Iterator[Wrong]:
    """Yield (rule, subject, detail) of all that does not hold at this moment. Nobody works meanwhile."""
    yield from _books()
    yield from _jobs()
    yield from _freed_too_early(ground)


def wrong_at_rest(ground: Ground) -> Iterator[Wrong]:
    """Yield what is left when everything has ended and nothing is broken."""
    yield from wrong_now(ground)
    for finding in drift.findings():
        yield "doctor", finding.subject, f"{finding.code}: {finding.found} instead of {finding.expected}"
    if held := ground.stage.held():
        yield "ledger", "all", f"{held} GPUs are held by nobody"
    if bound := [pod["metadata"]["name"] for pod in _ours(ground)]:
        yield "gone", "all", f"still bound: {bound}"


def _books() -> Iterator[Wrong]:
    for finding in drift.findings():
        if finding.code != NOT_YET:
            yield "ledger", finding.subject, f"{finding.code}: {finding.found} instead of {finding.expected}"
    for row in NodeAccelerator.objects.filter(held__gt=F("capacity")).exclude(capacity=0).select_related("node"):
        yield "twice", row.node.name, f"{row.held} of {row.capacity} GPUs are held"
    sums = Allocation.objects.filter(released_at=None).values("attempt").annotate(gpus=Sum("gpus"))
    wanted = {each.pk: each for each in Attempt.objects.exclude(step=Attempt.Step.ENDED).select_related("job")}
    for each in sums:
        attempt = wanted.get(each["attempt"])
        if attempt and not attempt.job.is_service and each["gpus"] > attempt.job.gpus:
            yield "twice", attempt.object_name, f"holds {each['gpus']} of {attempt.job.gpus} GPUs"


def _jobs() -> Iterator[Wrong]:
    live = Counter(Attempt.objects.exclude(step=Attempt.Step.ENDED).values_list("job_id", flat=True))
    for job in Job.objects.all():
        wanted = 1 if job.state in Job.HOLDING else 0
        if live[job.pk] != wanted:
            yield "lost", job.full_name, f"{job.state} with {live[job.pk]} live attempts"
        if job.state == Job.State.FAILED and not (job.outcome_code and job.outcome_message):
            yield "reason", job.full_name, f"failed with outcome {job.outcome_code!r} {job.outcome_message!r}"


def unexplained(before: set[int]) -> Iterator[Wrong]:
    """Yield the runs that waited before a cycle that has looked at them, and do not say why they wait."""
    for job in Job.objects.filter(pk__in=before, state=Job.State.QUEUED, reason_code=""):
        yield "reason", job.full_name, "waits without a reason"


def _freed_too_early(ground: Ground) -> Iterator[Wrong]:
    rows = Allocation.objects.filter(released_at=None).values_list(
        "attempt__job__uid", "attempt__number", "node__name", "rank", "pod_uid"
    )
    held = list(rows)
    for pod in _ours(ground):
        labels, meta = pod["metadata"]["labels"], pod["metadata"]
        run, attempt, node = labels[RUN], int(labels[ATTEMPT]), pod["spec"]["nodeName"]
        rank = labels.get(INDEX)
        mine = [row for row in held if row[:3] == (run, attempt, node)]
        if not any(row[4] == meta["uid"] if rank is None else row[3] == int(rank) for row in mine):
            yield "freed", meta["name"], f"is bound to {node}, and no place there is held for it"


def _ours(ground: Ground) -> list[Any]:
    """Pods of runs that may use GPUs now."""
    pods = [pod for pod in ground.objects("pods") or () if RUN in (pod["metadata"].get("labels") or {})]
    return [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"]["phase"] not in OVER]
