"""Which faults a node shows, and which came about between two looks at it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from clusters.watch.inventory import Catalogue, NodeView

# Kinds of a fault, as NodeFault.Kind has them.
NOT_READY, DEVICES, CONDITION, TAINT = "not_ready", "devices", "condition", "taint"
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a fault: patterns of condition types and of taint keys, in small letters."""

    conditions: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `is_patient`: it often mends itself within seconds, so gangs are given these seconds."""

    kind: str
    subject: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    is_patient: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others of the same node."""
        return self.kind, self.subject


def reported(view: NodeView, rules: Rules) -> Iterator[Fault]:
    """Yield the faults that a node's conditions and taints report, as long as they stand."""
    for kind, condition in view.conditions.items():
        if kind != "Ready" and condition.get("status") == "True" and _matches(kind, rules.conditions):
            words = {key: str(condition.get(key) or "") for key in ("reason", "message")}
            yield Fault(CONDITION, kind[:200], {key: text[:300] for key, text in words.items() if text})
    for taint in view.taints:
        if _matches(str(taint["key"]), rules.taints):
            yield Fault(TAINT, str(taint["key"])[:200], {"value": taint["value"], "effect": taint["effect"]})


def readiness(view: NodeView) -> Fault | None:
    """Return the fault of a node that is not ready. A silent one was waited for by its cluster already."""
    if view.is_ready:
        return None
    condition = view.conditions.get("Ready", {})
    status = str(condition.get("status") or "Unknown")
    is_silent = status == "Unknown" or any(taint["key"] == UNREACHABLE for taint in view.taints)
    return Fault(
        NOT_READY, detail={"status": status, "reason": condition.get("reason") or ""}, is_patient=not is_silent
    )


def fallen_devices(before: NodeView, after: NodeView, catalogue: Catalogue) -> Iterator[tuple[int, Fault]]:
    """Yield each flavor, by id, of which the node offers fewer GPUs than before; whether one was in use shows later."""
    for flavor in catalogue.flavors:
        had, has = before.devices.get(flavor.id, (0, 0))[1], after.devices.get(flavor.id, (0, 0))[1]
        if has < had:
            yield flavor.id, Fault(DEVICES, flavor.name, {"from": had, "to": has}, is_patient=True)


def risen_devices(open_detail: Mapping[str, object], capacity: int, allocatable: int) -> bool:
    """Whether the GPUs of a fault are back."""
    wanted = open_detail.get("from")
    return allocatable >= (wanted if isinstance(wanted, int) else 1) or 0 < capacity <= allocatable


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text.lower(), pattern) for pattern in patterns)
