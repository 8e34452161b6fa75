"""What a pod takes from its node, as the scheduler of Kubernetes counts it. Pure.

CPU in thousandths of a core, all else in its base unit (bytes, pieces).
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from clusters import quantities
from clusters.watch import shapes
from clusters.watch.shapes import Pod, PodSpec

Amounts = dict[str, int]

_ENDED = ("Succeeded", "Failed")
_MIB = 2**20


class PodUsage(Struct, frozen=True):
    """A bound pod that has not ended: what it takes, and from which node."""

    node: str
    amounts: Mapping[str, int]


def usage_of(pod: Pod) -> PodUsage | None:
    """Return what the pod takes from a node; None while it is not bound, and once it has ended."""
    spec, status = pod.spec, pod.status
    if not spec or not spec.node_name or (status and status.phase in _ENDED):
        return None
    return PodUsage(node=spec.node_name, amounts=requests_of(spec))


def requests_of(spec: PodSpec) -> Amounts:
    """Return a pod's effective requests: its containers together, or its largest init step if that is more.

    Init containers that restart always (sidecars) keep running beside all that follows them.
    """
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        asked = _asked(container.resources)
        if container.restart_policy == "Always":
            running = _sum(running, asked)
            peak = _larger(peak, running)
        else:
            peak = _larger(peak, _sum(running, asked))
    for container in spec.containers or ():
        running = _sum(running, _asked(container.resources))
    # Requests of the pod as a whole stand in for those of its containers.
    whole = _larger(running, peak) | _asked(spec.resources)
    return _sum(whole, _amounts(spec.overhead or {}))


def amount(resource: str, quantity: object) -> int:
    """Read one quantity; what cannot be read counts as nothing."""
    return _read(resource == "cpu", str(quantity))


def mebibytes(size: int) -> int:
    """Return bytes as MiB, rounded up."""
    return -(-size // _MIB)


def _asked(resources: shapes.Amounts | None) -> Amounts:
    if not resources:
        return {}
    # The API server fills requests from limits; other servers may not.
    return _amounts({**(resources.limits or {}), **(resources.requests or {})})


def _amounts(quantity_by_resource: Mapping[str, object]) -> Amounts:
    return {resource: amount(resource, text) for resource, text in quantity_by_resource.items()}


def _sum(left: Amounts, right: Amounts) -> Amounts:
    if not left or not right:
        return left or right
    return left | {resource: left.get(resource, 0) + value for resource, value in right.items()}


def _larger(left: Amounts, right: Amounts) -> Amounts:
    if not left or not right:
        return left or right
    return left | {resource: max(left.get(resource, 0), value) for resource, value in right.items()}


# A fleet uses few different quantities, and exact fractions are slow to make.
@lru_cache(maxsize=4096)
def _read(is_cpu: bool, text: str) -> int:  # noqa: FBT001 -- a key of the cache
    try:
        return max(0, quantities.millis(text) if is_cpu else quantities.whole(text))
    except quantities.QuantityError:
        return 0
