"""Read from the pods of an ended attempt why it ended and whether to try again. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jobs.models import Job

Outcome = Job.Outcome

# Exit code of a container that the kernel's out-of-memory killer ended.
OOM_EXIT = 137
# What a kubelet writes for a container whose end it did not see, with the exit code 137: that says nothing.
UNKNOWN_END = "ContainerStatusUnknown"
# Reasons of DisruptionTarget that come from a node's loss; others are preemption or eviction.
NODE_REASONS = frozenset({"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"})
# Reasons with which a kubelet refuses a pod: the node's fault, not the user's.
KUBELET_REFUSALS = ("UnexpectedAdmissionError", "OutOf", "TopologyAffinityError", "NodeAffinity", "NodeLost")


class Pod(Protocol):
    """What the verdict reads of a pod, as it was observed or as it is now."""

    @property
    def phase(self) -> str: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def init_message(self) -> str: ...
    @property
    def disruption(self) -> str: ...
    @property
    def restarts(self) -> int: ...
    @property
    def is_deleting(self) -> bool: ...
    @property
    def finished_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why an attempt ended. `is_infrastructure`: not the user's fault, so it queues again free of charge."""

    code: Outcome
    message: str = ""
    rank: int | None = None
    exit_code: int | None = None
    is_infrastructure: bool = False
    # A kubelet would not run a pod that was given to its node.
    is_refusal: bool = False


def of_failed(pods: Iterable[Pod]) -> Verdict:
    """Judge by the first pod that failed by itself: the peers of a gang only follow it."""
    failed = [pod for pod in pods if _failed_by_itself(pod)]
    if not failed:
        # Nothing failed, and yet the Job did: its pods were taken away from it.
        return Verdict(Outcome.NODE_LOST, "a pod was deleted on the cluster", is_infrastructure=True)
    first = min(failed, key=lambda pod: (pod.finished_at is None, pod.finished_at, pod.rank or 0))
    return of_pod(first)


def of_pod(pod: Pod) -> Verdict:
    """Judge one failed pod."""
    text = pod.message or pod.reason
    if pod.disruption:
        code = Outcome.NODE_LOST if pod.disruption in NODE_REASONS else Outcome.PREEMPTED
        return Verdict(code, text or pod.disruption, pod.rank, pod.exit_code, is_infrastructure=True)
    if pod.reason.startswith(KUBELET_REFUSALS):
        return Verdict(Outcome.NODE_LOST, text, pod.rank, pod.exit_code, is_infrastructure=True, is_refusal=True)
    if pod.reason == "DeadlineExceeded":
        return Verdict(Outcome.TIMEOUT, text, pod.rank, pod.exit_code)
    if pod.reason == "OOMKilled" or (pod.exit_code == OOM_EXIT and pod.reason != UNKNOWN_END):
        return Verdict(Outcome.OOM, text, pod.rank, pod.exit_code)
    if pod.reason.startswith("Init:"):
        return Verdict(Outcome.CODE_CHECKOUT, pod.init_message or text, pod.rank, pod.exit_code)
    return Verdict(Outcome.USER_ERROR, text, pod.rank, pod.exit_code)


def _failed_by_itself(pod: Pod) -> bool:
    """Whether the pod is a cause. One that was deleted while it ran ends with a failure too, and is none.

    Times have a resolution of a second, so they do not tell a cause from the peers killed for it. A container that
    was started again and again is a cause although its pod is deleted in the end: so the controller gives it up.
    """
    if pod.disruption:
        return True
    if pod.phase != "Failed" and pod.exit_code in (None, 0):
        return False
    return not pod.is_deleting or pod.restarts > 0
