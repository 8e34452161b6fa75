"""Errors that GPUs report as XIDs: which are a fault of their node, of which GPU, and whose run it hits.

An exporter shows the last XID of a GPU for as long as it runs. So a fault begins with the first look that shows its
number, stands while the exporter shows any, and is over once it shows none: the GPU was reset, or the exporter started
anew. Some numbers are what a program does wrong: no node is blamed for them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from clusters.models import Node, NodeEvent, NodeFault
from clusters.services.faults import mark_faulty
from clusters.services.quarantine import quarantine_if_frequent
from clusters.telemetry.join import Owner
from clusters.telemetry.parse import Reading
from portal.core.enqueue import enqueue
from portal.core.publish import publish

Kind = NodeFault.Kind


@dataclass(frozen=True, slots=True)
class Shown:
    """The last XID of one GPU; 0 where there was none. `holder` as in NodeFault."""

    node_id: int
    gpu: str
    index: int
    xid: int
    holder: Mapping[str, Any] | None

    @property
    def subject(self) -> str:
        """What tells its fault from others of the node."""
        return f"{self.gpu} {self.xid}"


def shown(readings: Sequence[Reading], owners: Mapping[tuple[str, str], Owner], *, node_id: int) -> Iterator[Shown]:
    """Yield what each GPU of a node shows. An exporter that names no pod at all does not tell who holds a GPU."""
    names_pods = any(reading.pod for reading in readings)
    for reading in readings:
        xid = reading.values.get("xid")
        if xid is None:
            continue
        owner = owners.get((reading.namespace, reading.pod))
        holder = {"run": owner.run, "rank": owner.rank, "pod": owner.pod} if owner else {}
        yield Shown(node_id, reading.gpu, reading.index, int(xid), holder if names_pods else None)


def note(seen: Iterable[Shown], now: datetime) -> None:
    """Open and close faults by what the exporters show. A node that did not answer stays as it was."""
    open_rows = _open_rows()
    by_node: dict[int, list[Shown]] = {}
    for one in seen:
        if one.xid or (one.node_id, one.gpu) in open_rows:
            by_node.setdefault(one.node_id, []).append(one)
    for node_id, shows in sorted(by_node.items()):
        opened = [one for one in shows if _is_news(one, open_rows)]
        over = [row for one in shows if not one.xid for row in open_rows.get((node_id, one.gpu), ())]
        if opened or over:
            _write(node_id, opened, over, now)


def _open_rows() -> dict[tuple[int, str], list[NodeFault]]:
    found: dict[tuple[int, str], list[NodeFault]] = {}
    for row in NodeFault.objects.filter(kind=Kind.XID, cleared_at=None):
        found.setdefault((row.node_id, row.subject.partition(" ")[0]), []).append(row)
    return found


def _is_news(one: Shown, open_rows: Mapping[tuple[int, str], Sequence[NodeFault]]) -> bool:
    if not one.xid or one.xid in settings.MUSTER_XID_APPLICATION:
        return False
    return all(row.subject != one.subject for row in open_rows.get((one.node_id, one.gpu), ()))


@transaction.atomic
def _write(node_id: int, opened: Sequence[Shown], over: Sequence[NodeFault], now: datetime) -> None:
    # Locked, so that it neither leaves meanwhile nor is marked by what the watcher saw before.
    node = Node.objects.select_for_update(no_key=True).filter(pk=node_id, gone_at=None).first()
    if node is None:
        return
    rows = [_fault(node, one, now) for one in opened]
    NodeFault.objects.bulk_create(rows, ignore_conflicts=True)
    NodeFault.objects.filter(pk__in=[row.pk for row in over], cleared_at=None).update(cleared_at=now)
    lines = [(NodeEvent.Kind.FAULT, row) for row in rows] + [(NodeEvent.Kind.MENDED, row) for row in over]
    NodeEvent.objects.bulk_create(
        NodeEvent(node=node, at=now, kind=kind, detail={"what": f"XID {row.detail['xid']}", "gpu": row.detail["gpu"]})
        for kind, row in lines
    )
    mark_faulty([node_id])
    if rows:
        quarantine_if_frequent([node_id], now)
        enqueue("jobs.tasks.reconcile")
    publish(f"cluster:{node.cluster_id}", node.cluster.name)


def _fault(node: Node, one: Shown, now: datetime) -> NodeFault:
    return NodeFault(
        node=node,
        node_uid=node.uid,
        kind=Kind.XID,
        subject=one.subject,
        detail={"gpu": one.index, "xid": one.xid},
        detected_at=now,
        acts_at=now if one.xid in settings.MUSTER_XID_CRITICAL else None,
        holder=one.holder,
    )
