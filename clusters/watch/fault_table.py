"""Rows of the faults of one cluster's nodes: opened when a fault shows, closed when it is mended."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from clusters.models import NodeAccelerator, NodeEvent, NodeFault
from clusters.services.faults import mark_faulty
from clusters.services.quarantine import quarantine_if_frequent
from clusters.watch.faults import (
    CONDITION,
    DEVICES,
    NOT_READY,
    TAINT,
    Fault,
    Rules,
    fallen_devices,
    readiness,
    reported,
    risen_devices,
)
from clusters.watch.inventory import Catalogue, NodeView

Key = tuple[str, str]
Kind = NodeFault.Kind
REPORTED = (CONDITION, TAINT)


@dataclass(frozen=True, slots=True)
class Look:
    """A node at two looks: `before` None when there was none, or when the node was gone."""

    node_id: int
    before: NodeView | None
    after: NodeView
    was_gone: bool = False

    @property
    def is_replaced(self) -> bool:
        """Whether it is another node under the old name."""
        return self.before is not None and self.before.uid != self.after.uid


@dataclass(slots=True)
class _Plan:
    """What one batch opens and closes."""

    opened: list[NodeFault] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    hastened: list[int] = field(default_factory=list)
    timeline: list[NodeEvent] = field(default_factory=list)
    # Nodes that left or are others now, and those that offer another number of GPUs.
    left: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)


class FaultTable:
    """Open faults by node. It writes inside the transaction of the mirror; after an error `load` comes first.

    XIDs are not among them: the collector sees them, and only the end of their node ends them here.
    """

    def __init__(self, cluster_id: int, catalogue: Catalogue) -> None:
        self._cluster_id = cluster_id
        self._catalogue = catalogue
        self._rules = Rules(
            conditions=tuple(pattern.lower() for pattern in settings.MUSTER_FAULT_CONDITIONS),
            taints=tuple(pattern.lower() for pattern in settings.MUSTER_FAULT_TAINTS),
        )
        self._grace = timedelta(seconds=settings.MUSTER_FAULT_GRACE_S)
        self._open: dict[int, dict[Key, NodeFault]] = {}

    def load(self) -> None:
        """Read what is open."""
        found: dict[int, dict[Key, NodeFault]] = defaultdict(dict)
        for fault in _open_rows().filter(node__cluster_id=self._cluster_id):
            found[fault.node_id][fault.kind, fault.subject] = fault
        self._open = dict(found)

    def observe(self, looks: Sequence[Look], now: datetime) -> bool:
        """Open and close faults after what changed; return whether any was opened."""
        held = _held(look.node_id for look in looks if self._may_hurt(look))
        plan = _Plan()
        for look in looks:
            self._judge(look, held, plan, now)
            if look.before is not None and look.before.devices != look.after.devices:
                plan.changed.add(look.node_id)
        return self._write(plan, now)

    def gone(self, nodes: Iterable[tuple[int, NodeView]], now: datetime) -> bool:
        """Nodes left their cluster: that is a fault where something of ours was."""
        nodes = list(nodes)
        held = _held(node_id for node_id, _view in nodes)
        plan = _Plan(left={node_id for node_id, _view in nodes})
        for node_id, view in nodes:
            self._close(node_id, list(self._open.get(node_id, {})), plan, now)
            if any(gpus for (holder, _flavor), gpus in held.items() if holder == node_id):
                self._open_one(node_id, view, Fault(Kind.GONE), plan, now)
        return self._write(plan, now)

    def _judge(self, look: Look, held: Mapping[tuple[int, int], int], plan: _Plan, now: datetime) -> None:
        if look.was_gone or look.is_replaced:
            plan.left.add(look.node_id)
            self._close(look.node_id, list(self._open.get(look.node_id, {})), plan, now)
        if look.is_replaced and not look.was_gone and any(key[0] == look.node_id and held[key] for key in held):
            self._open_one(look.node_id, look.after, Fault(Kind.REPLACED), plan, now, is_over=True)
        wanted = {fault.key: fault for fault in reported(look.after, self._rules)}
        wanted |= {fault.key: fault for fault in self._changes(look, held)}
        known = self._open.get(look.node_id, {})
        self._hasten(look, known, plan, now)
        self._close(look.node_id, [key for key in known if self._is_mended(known[key], look, wanted)], plan, now)
        for key, fault in wanted.items():
            if fault.kind == DEVICES and key in known:
                fault = self._once_more(look.node_id, fault, plan, now)
            if key not in known:
                self._open_one(look.node_id, look.after, fault, plan, now)

    def _once_more(self, node_id: int, fault: Fault, plan: _Plan, now: datetime) -> Fault:
        """More GPUs fell away: another fault for those who came since, over once as many are back as at first."""
        first = self._open[node_id][fault.key].detail.get("from")
        self._close(node_id, [fault.key], plan, now)
        return replace(fault, detail={**fault.detail, **({"from": first} if first else {})})

    def _changes(self, look: Look, held: Mapping[tuple[int, int], int]) -> Iterator[Fault]:
        """Yield what came about since the last look. A node that comes is not ready at first: that is no fault."""
        before = look.before
        if before is None or look.was_gone or look.is_replaced:
            return
        if before.is_ready and (fault := readiness(look.after)):
            yield fault
        for flavor_id, fault in fallen_devices(before, look.after, self._catalogue):
            in_use = held.get((look.node_id, flavor_id), 0)
            if in_use > look.after.devices.get(flavor_id, (0, 0))[1]:
                yield Fault(fault.kind, fault.subject, {**fault.detail, "held": in_use}, fault.is_patient)

    def _is_mended(self, fault: NodeFault, look: Look, wanted: Mapping[Key, Fault]) -> bool:
        if fault.kind in REPORTED:
            return (fault.kind, fault.subject) not in wanted
        if fault.kind == NOT_READY:
            return look.after.is_ready
        if fault.kind == DEVICES:
            ids = [flavor.id for flavor in self._catalogue.flavors if flavor.name == fault.subject]
            return any(risen_devices(fault.detail, *look.after.devices.get(key, (0, 0))) for key in ids)
        return False

    def _hasten(self, look: Look, known: Mapping[Key, NodeFault], plan: _Plan, now: datetime) -> None:
        """A node that was not ready and now is silent is waited for no longer."""
        fault, seen = known.get((NOT_READY, "")), readiness(look.after)
        if fault is not None and seen is not None and not seen.is_patient and fault.acts_at and fault.acts_at > now:
            fault.acts_at, fault.detail = now, dict(seen.detail)
            plan.hastened.append(fault.pk)

    def _may_hurt(self, look: Look) -> bool:
        """Whether it matters what is held on the node: only then is it asked for."""
        if look.before is None:
            return False
        return look.is_replaced or any(fallen_devices(look.before, look.after, self._catalogue))

    def _open_one(
        self, node_id: int, view: NodeView, fault: Fault, plan: _Plan, now: datetime, *, is_over: bool = False
    ) -> None:
        row = NodeFault(
            node_id=node_id,
            node_uid=view.uid,
            kind=fault.kind,
            subject=fault.subject,
            detail=dict(fault.detail),
            detected_at=now,
            acts_at=now + self._grace if fault.is_patient else now,
            cleared_at=now if is_over else None,
        )
        plan.opened.append(row)
        if fault.kind in REPORTED:  # the others have lines of their own
            plan.timeline.append(_line(node_id, NodeEvent.Kind.FAULT, fault.subject, fault.detail, now))

    def _close(self, node_id: int, keys: Iterable[Key], plan: _Plan, now: datetime) -> None:
        known = self._open.get(node_id, {})
        for key in keys:
            row = known.pop(key)
            plan.closed.append(row.pk)
            if row.kind in REPORTED:
                plan.timeline.append(_line(node_id, NodeEvent.Kind.MENDED, row.subject, {}, now))

    def _write(self, plan: _Plan, now: datetime) -> bool:
        if plan.closed:
            NodeFault.objects.filter(pk__in=plan.closed, cleared_at=None).update(cleared_at=now)
        if plan.hastened:
            NodeFault.objects.filter(pk__in=plan.hastened, cleared_at=None).update(acts_at=now)
        if plan.opened:
            # Another watcher of this cluster may have been faster.
            NodeFault.objects.bulk_create(plan.opened, ignore_conflicts=True)
        if plan.left:
            xids = NodeFault.objects.filter(node__in=plan.left, kind=Kind.XID, cleared_at=None)
            xids.update(cleared_at=now)
        if plan.opened:
            self._reload({row.node_id for row in plan.opened})
        touched = {row.node_id for row in plan.opened} | {line.node_id for line in plan.timeline}
        mark_faulty(touched | plan.left | plan.changed)
        NodeEvent.objects.bulk_create(plan.timeline)
        if counted := {row.node_id for row in plan.opened if row.kind in NodeFault.COUNTED}:
            quarantine_if_frequent(counted, now)
        return bool(plan.opened or plan.hastened)

    def _reload(self, node_ids: Iterable[int]) -> None:
        ids = set(node_ids)
        for node_id in ids:
            self._open[node_id] = {}
        for fault in _open_rows().filter(node__in=ids):
            self._open[fault.node_id][fault.kind, fault.subject] = fault


def _open_rows() -> QuerySet[NodeFault]:
    return NodeFault.objects.filter(cleared_at=None).exclude(kind=Kind.XID)


def _held(node_ids: Iterable[int]) -> dict[tuple[int, int], int]:
    ids = set(node_ids)
    if not ids:
        return {}
    rows = NodeAccelerator.objects.filter(node__in=ids, held__gt=0).values_list("node_id", "flavor_id", "held")
    return {(node_id, flavor_id): held for node_id, flavor_id, held in rows}


def _line(node_id: int, kind: str, subject: str, detail: Mapping[str, object], now: datetime) -> NodeEvent:
    return NodeEvent(node_id=node_id, at=now, kind=kind, detail={"what": subject, **detail})
