"""Faults of nodes as a step of the driver sees them: which place of an attempt has fallen, and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from clusters.models import Node, NodeFault
from jobs.models import Allocation

Kind = NodeFault.Kind
_OF_GPUS = (Kind.DEVICES, Kind.XID)
# As the node controller of Kubernetes has it: when so large a part of a cluster falls silent at once, it is the way to
# the nodes that failed, and their pods run on.
STORM_SHARE, STORM_LEAST = 0.55, 3
# How long after a node left a place on it may still be held: the row of the fault is looked for that far back.
REMEMBERED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Fallen:
    """A place whose node failed. `fault` is None where its row was pruned or never written."""

    row: Allocation
    kind: str
    fault: NodeFault | None

    @property
    def message(self) -> str:
        """What happened, for the log of the run."""
        name, fault = self.row.node.name, self.fault
        subject, detail = (fault.subject, fault.detail) if fault else ("", {})
        return {
            Kind.NOT_READY: f"node {name} is not ready",
            Kind.GONE: f"node {name} left the cluster",
            Kind.REPLACED: f"node {name} was made anew",
            Kind.DEVICES: f"node {name} lost GPUs that were in use",
            Kind.XID: f"node {name} reports XID {detail.get('xid')} of GPU {detail.get('gpu')}",
            Kind.CONDITION: f"node {name} reports {subject}",
            Kind.TAINT: f"node {name} is tainted {subject}",
        }.get(Kind(self.kind), f"node {name} was lost")


def load_faults(node_ids: Iterable[int], now: datetime) -> dict[int, list[NodeFault]]:
    """Return the open faults of these nodes, and the last time each left or was replaced; the oldest first."""
    ids = set(node_ids)
    if not ids:
        return {}
    found: dict[int, list[NodeFault]] = {}
    wanted = Q(cleared_at=None) | Q(kind__in=(Kind.GONE, Kind.REPLACED), detected_at__gt=now - REMEMBERED)
    for fault in NodeFault.objects.filter(wanted, node__in=ids).order_by("detected_at", "pk"):
        found.setdefault(fault.node_id, []).append(fault)
    return _without_storms(found)


def fallen(
    held: Sequence[Allocation], faults: Mapping[int, Sequence[NodeFault]], now: datetime, *, run: str
) -> Fallen | None:
    """Return the first place of a run whose node failed for good, or for longer than it is given to mend."""
    for row in held:
        if place := _of_place(row, faults.get(row.node_id, ()), now, run):
            return place
    return None


def suspected(
    held: Sequence[Allocation], faults: Mapping[int, Sequence[NodeFault]], now: datetime, *, run: str
) -> Fallen | None:
    """Return a place whose node may be why its gang failed, though it may yet mend itself."""
    if place := fallen(held, faults, now, run=run):
        return place
    for row in held:
        open_faults = [fault for fault in faults.get(row.node_id, ()) if _may_have_met(row, fault, run)]
        if open_faults:
            return Fallen(row, open_faults[0].kind, open_faults[0])
        if not row.node.is_ready:
            return Fallen(row, Kind.NOT_READY, None)
    return None


def of_node(row: Allocation, faults: Mapping[int, Sequence[NodeFault]]) -> NodeFault | None:
    """Return the fault that its node has now, if any."""
    return next((fault for fault in faults.get(row.node_id, ()) if fault.cleared_at is None), None)


def is_emptied(row: Allocation, now: datetime) -> bool:
    """Whether the deadline of a maintenance of its node has passed."""
    return row.node.maintenance_at is not None and row.node.maintenance_at <= now


def _of_place(row: Allocation, faults: Sequence[NodeFault], now: datetime, run: str) -> Fallen | None:
    if row.node.gone_at is not None:
        return Fallen(row, Kind.GONE, _last(faults, Kind.GONE))
    if row.node.uid != row.node_uid:
        return Fallen(row, Kind.REPLACED, _last(faults, Kind.REPLACED) or _last(faults, Kind.GONE))
    for fault in faults:
        acts = fault.acts_at is not None and fault.acts_at <= now and fault.kind not in (Kind.GONE, Kind.REPLACED)
        if acts and _is_met_by(row, fault, run):
            return Fallen(row, fault.kind, fault)
    return None


def _is_met_by(row: Allocation, fault: NodeFault, run: str) -> bool:
    """Whether the fault stands and is one of this place: of one GPU, it is that of the pod that has the GPU."""
    if not _stands_for(row, fault):
        return False
    return fault.holder is None or _is_holder(fault.holder, row, run)


def _may_have_met(row: Allocation, fault: NodeFault, run: str) -> bool:
    """The same, where the place may be that of a GPU of which nobody knows whose it was: its pod had hardly begun."""
    return _stands_for(row, fault) and (not fault.holder or _is_holder(fault.holder, row, run))


def _stands_for(row: Allocation, fault: NodeFault) -> bool:
    """GPUs that were lost or broken before the place was given are none that it was given."""
    return fault.cleared_at is None and not (fault.kind in _OF_GPUS and fault.detected_at < row.made_at)


def _is_holder(holder: Mapping[str, Any], row: Allocation, run: str) -> bool:
    if holder.get("run") != run:
        return False
    # Replicas have no rank of their own, and ranks of a gang are not booked by pod.
    return bool(holder["pod"] == row.pod_uid if row.pod_uid else holder["rank"] in (None, row.rank))


def _last(faults: Sequence[NodeFault], kind: str) -> NodeFault | None:
    return next((fault for fault in reversed(faults) if fault.kind == kind), None)


def _without_storms(found: dict[int, list[NodeFault]]) -> dict[int, list[NodeFault]]:
    silent = {node_id for node_id, faults in found.items() if any(fault.kind == Kind.NOT_READY for fault in faults)}
    if not silent:
        return found
    clusters = Node.objects.filter(pk__in=silent).values("cluster_id")
    rows = (
        Node.objects.filter(cluster__in=clusters, gone_at=None)
        .values("cluster_id")
        .annotate(all_nodes=Count("pk"), down=Count("pk", filter=Q(is_ready=False)))
    )
    stormy = [row["cluster_id"] for row in rows if _is_storm(row["down"], row["all_nodes"])]
    if not stormy:
        return found
    spared = set(Node.objects.filter(pk__in=silent, cluster__in=stormy).values_list("pk", flat=True))
    return {
        node_id: [fault for fault in faults if node_id not in spared or fault.kind != Kind.NOT_READY]
        for node_id, faults in found.items()
    }


def _is_storm(down: int, nodes: int) -> bool:
    return down >= STORM_LEAST and down >= STORM_SHARE * nodes
