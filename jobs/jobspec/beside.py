"""Where the pods of further sets go: beside the workers, one after the other. They have no GPUs.

A run's ranks are numbered through: its workers first, then the pods of each further set. The decision looks for nodes
that hold a worker with the most pods that come beside one, so that whatever it finds holds the whole run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clusters import quantities

MIB = 2**20
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Beside:
    """One further pod: what it asks for, in thousandths of a core and MiB."""

    cpu_milli: int
    memory_mib: int


def beside(document: Mapping[str, Any]) -> list[Beside]:
    """The further pods of a checked document, in the order of their ranks."""
    return [
        Beside(_cpu_milli(pod_set.get("cpu")), memory_mib(pod_set.get("memory")))
        for pod_set in document.get("pod_sets") or ()
        for _pod in range(pod_set.get("workers") or 1)
    ]


def most_beside_one(document: Mapping[str, Any], workers: int) -> Beside:
    """The most that comes beside any one of the workers."""
    pods = beside(document)
    shares = [pods[first::workers] for first in range(min(workers, len(pods)))]
    return Beside(
        max((sum(pod.cpu_milli for pod in share) for share in shares), default=0),
        max((sum(pod.memory_mib for pod in share) for share in shares), default=0),
    )


def places(of_workers: Sequence[Place], count: int) -> list[Place]:
    """The places of the workers, and then those of so many further pods."""
    return [*of_workers, *(of_workers[number % len(of_workers)] for number in range(count) if of_workers)]


def memory_mib(amount: Mapping[str, str] | None) -> int:
    """What is asked for, rounded up."""
    return -(-quantities.whole(amount["request"]) // MIB) if amount else 0


def _cpu_milli(amount: Mapping[str, str] | None) -> int:
    return quantities.millis(amount["request"]) if amount else 0
