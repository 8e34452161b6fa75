"""What a node says about itself, what it offers, and what changed about it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from clusters.watch.shapes import Condition, Node, NodeInfo, NodeSpec, NodeStatus, Taint
from clusters.watch.usage import amount

Json = Mapping[str, Any]
Devices = Mapping[int, tuple[int, int]]

_NO_SPEC, _NO_STATUS, _NO_INFO = NodeSpec(), NodeStatus(), NodeInfo()


@dataclass(frozen=True, slots=True)
class FlavorSelector:
    """Which nodes offer a flavor: those with this label that can allocate this resource."""

    id: int
    name: str
    label_key: str
    label_value: str
    resource_name: str


@dataclass(frozen=True)
class Catalogue:
    """What the administrator defined: all flavors, and the label keys of this cluster's topology levels."""

    flavors: tuple[FlavorSelector, ...] = ()
    level_keys: tuple[str, ...] = ()

    @cached_property
    def gpu_resources(self) -> frozenset[str]:
        """The resources that count as GPUs."""
        return frozenset(flavor.resource_name for flavor in self.flavors)


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node; the fields are those of Node. `devices`: flavor id -> (capacity, allocatable)."""

    name: str
    uid: str
    labels: Mapping[str, str]
    taints: Sequence[Json]
    conditions: Json
    address: str
    kubelet_version: str
    container_runtime: str
    is_ready: bool
    is_cordoned: bool
    cpu_milli: int
    memory_mib: int
    pods: int
    extended: Mapping[str, int]
    devices: Devices
    resource_version: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The part of a node whose changes make its timeline."""

    uid: str
    is_gone: bool
    is_ready: bool
    is_cordoned: bool
    labels: Mapping[str, str]
    devices: Devices


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a node's timeline; `kind` is a value of NodeEvent.Kind."""

    kind: str
    detail: Mapping[str, object] = field(default_factory=dict)


def node_view(node: Node, flavors: Iterable[FlavorSelector]) -> NodeView:
    """Read a node. One of an unknown product offers nothing, but is there."""
    metadata, spec, status = node.metadata, node.spec or _NO_SPEC, node.status or _NO_STATUS
    labels, allocatable, info = metadata.labels or {}, status.allocatable or {}, status.node_info or _NO_INFO
    conditions = {each.type or "": _condition(each) for each in status.conditions or ()}
    return NodeView(
        name=metadata.name,
        uid=metadata.uid,
        labels=labels,
        taints=[_taint(taint) for taint in spec.taints or ()],
        conditions=conditions,
        address=_address(status)[:64],
        kubelet_version=(info.kubelet_version or "")[:60],
        container_runtime=(info.container_runtime_version or "")[:80],
        is_ready=conditions.get("Ready", {}).get("status") == "True",
        is_cordoned=bool(spec.unschedulable),
        cpu_milli=amount("cpu", allocatable.get("cpu", 0)),
        memory_mib=amount("memory", allocatable.get("memory", 0)) // 2**20,
        pods=amount("pods", allocatable.get("pods", 0)),
        extended=_extended(allocatable),
        devices=_devices(labels, status, flavors),
        resource_version=metadata.resource_version or "",
    )


def facts_of(view: NodeView) -> NodeFacts:
    """Return the facts of a node that is there."""
    return NodeFacts(
        uid=view.uid,
        is_gone=False,
        is_ready=view.is_ready,
        is_cordoned=view.is_cordoned,
        labels=view.labels,
        devices=view.devices,
    )


def changes(before: NodeFacts | None, after: NodeFacts, catalogue: Catalogue) -> Iterator[Change]:
    """Yield what happened to a node between two looks at it."""
    if before is None:
        yield Change("registered")
        return
    if before.is_gone or before.uid != after.uid:
        yield Change("returned", {"uid": after.uid})
    if before.is_ready != after.is_ready:
        yield Change("ready" if after.is_ready else "not_ready")
    if before.is_cordoned != after.is_cordoned:
        yield Change("cordoned" if after.is_cordoned else "uncordoned")
    yield from _device_changes(before.devices, after.devices, catalogue.flavors)
    moved = {
        key: [before.labels.get(key), after.labels.get(key)]
        for key in catalogue.level_keys
        if before.labels.get(key) != after.labels.get(key)
    }
    if moved:
        yield Change("relabeled", moved)


def _device_changes(before: Devices, after: Devices, flavors: Iterable[FlavorSelector]) -> Iterator[Change]:
    for flavor in flavors:
        had, has = before.get(flavor.id, (0, 0))[1], after.get(flavor.id, (0, 0))[1]
        if had != has:
            kind = "device_lost" if has < had else "device_recovered"
            yield Change(kind, {"flavor": flavor.name, "from": had, "to": has})


def _devices(labels: Json, status: NodeStatus, flavors: Iterable[FlavorSelector]) -> dict[int, tuple[int, int]]:
    allocatable, capacity = status.allocatable or {}, status.capacity or {}
    devices = {
        flavor.id: (
            amount(flavor.resource_name, capacity.get(flavor.resource_name, 0)),
            amount(flavor.resource_name, allocatable.get(flavor.resource_name, 0)),
        )
        for flavor in flavors
        if labels.get(flavor.label_key) == flavor.label_value
    }
    return {flavor: counts for flavor, counts in devices.items() if any(counts)}


def _extended(allocatable: Json) -> dict[str, int]:
    """Resources outside of Kubernetes' own names: what device plug-ins offer."""
    own = ("kubernetes.io/", "hugepages-", "attachable-volumes-")
    return {
        name: amount(name, quantity)
        for name, quantity in sorted(allocatable.items())
        if "/" in name and not name.startswith(own) and ".kubernetes.io/" not in name
    }


def _condition(condition: Condition) -> dict[str, str]:
    # Without the heartbeat time, which changes all the time and says nothing.
    told = {
        "status": condition.status or "Unknown",
        "reason": condition.reason or "",
        "since": condition.last_transition_time or "",
    }
    if told["status"] == "True" and condition.type != "Ready":  # it says what is wrong, an XID for instance
        told["message"] = (condition.message or "")[:300]
    return told


def _taint(taint: Taint) -> dict[str, object]:
    return {"key": taint.key or "", "value": taint.value or "", "effect": taint.effect or ""}


def _address(status: NodeStatus) -> str:
    by_type = {each.type: each.address or "" for each in status.addresses or ()}
    return by_type.get("InternalIP") or by_type.get("Hostname") or ""
