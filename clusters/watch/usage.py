"""What a pod takes from its node, as the scheduler of Kubernetes counts it. Pure.

CPU in thousandths of a core, all else in its base unit (bytes, pieces).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clusters import quantities

Json = Mapping[str, Any]
Amounts = dict[str, int]

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A bound pod that has not ended: what it takes, and from which node."""

    node: str
    amounts: Mapping[str, int]


def usage_of(pod: Json) -> PodUsage | None:
    """Return what the pod takes from a node; None while it is not bound, and once it has ended."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return None
    return PodUsage(node=spec["nodeName"], amounts=requests_of(spec))


def requests_of(spec: Json) -> Amounts:
    """Return a pod's effective requests: its containers together, or its largest init step if that is more.

    Init containers that restart always (sidecars) keep running beside all that follows them.
    """
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, asked)
            peak = _larger(peak, running)
        else:
            peak = _larger(peak, _sum(running, asked))
    for container in spec.get("containers") or []:
        running = _sum(running, _asked(container))
    # Requests of the pod as a whole stand in for those of its containers.
    whole = _larger(running, peak) | _asked(spec)
    return _sum(whole, _amounts(spec.get("overhead") or {}))


def amount(resource: str, quantity: object) -> int:
    """Read one quantity; what cannot be read counts as nothing."""
    return _read(resource == "cpu", str(quantity))


def mebibytes(size: int) -> int:
    """Return bytes as MiB, rounded up."""
    return -(-size // _MIB)


def _asked(owner: Json) -> Amounts:
    resources = owner.get("resources") or {}
    # The API server fills requests from limits; other servers may not.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(quantity_by_resource: Json) -> Amounts:
    return {resource: amount(resource, text) for resource, text in quantity_by_resource.items()}


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return left | {resource: left.get(resource, 0) + value for resource, value in right.items()}


def _larger(left: Amounts, right: Amounts) -> Amounts:
    return left | {resource: max(left.get(resource, 0), value) for resource, value in right.items()}


# A fleet uses few different quantities, and exact fractions are slow to make.
@lru_cache(maxsize=4096)
def _read(is_cpu: bool, text: str) -> int:  # noqa: FBT001 -- a key of the cache
    try:
        return max(0, quantities.millis(text) if is_cpu else quantities.whole(text))
    except quantities.QuantityError:
        return 0
