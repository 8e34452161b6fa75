"""Read from the pods of an ended attempt why it ended and whether to try again."""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.models import ObservedPod
from jobs.models import Job

Outcome = Job.Outcome

# Exit code of a container that the kernel's out-of-memory killer ended.
OOM_EXIT = 137
# Reasons of DisruptionTarget that come from a node's loss; others are preemption or eviction.
NODE_REASONS = frozenset({"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"})
# Reasons with which a kubelet refuses a pod: the node's fault, not the user's.
KUBELET_REFUSALS = ("UnexpectedAdmissionError", "OutOf", "TopologyAffinityError", "NodeAffinity", "NodeLost")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why an attempt ended. `is_infrastructure`: not the user's fault, so it queues again free of charge."""

    code: Outcome
    message: str = ""
    rank: int | None = None
    exit_code: int | None = None
    is_infrastructure: bool = False


def of_failed(pods: Sequence[ObservedPod], *, fallback: str = "") -> Verdict:
    """Judge by the first pod that failed: the peers of a gang only follow it."""
    failed = [pod for pod in pods if pod.phase == "Failed" or pod.exit_code not in (None, 0) or pod.disruption]
    if not failed:
        return Verdict(Outcome.USER_ERROR, fallback)
    # A peer that is killed has a disruption or signal too; the first to finish is the cause.
    first = min(failed, key=lambda pod: (pod.finished_at is None, pod.finished_at, pod.rank or 0))
    return of_pod(first)


def of_pod(pod: ObservedPod) -> Verdict:
    """Judge one failed pod."""
    text = pod.message or pod.reason
    if pod.disruption:
        code = Outcome.NODE_LOST if pod.disruption in NODE_REASONS else Outcome.PREEMPTED
        return Verdict(code, text or pod.disruption, pod.rank, pod.exit_code, is_infrastructure=True)
    if pod.reason.startswith(KUBELET_REFUSALS):
        return Verdict(Outcome.NODE_LOST, text, pod.rank, pod.exit_code, is_infrastructure=True)
    if pod.reason == "OOMKilled" or pod.exit_code == OOM_EXIT:
        return Verdict(Outcome.OOM, text, pod.rank, pod.exit_code)
    if pod.reason.startswith("Init:"):
        return Verdict(Outcome.CODE_CHECKOUT, pod.init_message or text, pod.rank, pod.exit_code)
    return Verdict(Outcome.USER_ERROR, text, pod.rank, pod.exit_code)
