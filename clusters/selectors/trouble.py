"""Nodes that are out of use, or should be: faults that stand, quarantine, maintenance."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from clusters.models import NEEDS_LOOK, Cluster, Node, NodeFault, NodeMaintenance

MOST = 100
ONE_BREAKDOWN = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Troubled:
    """One node, and why it is out of use, in sentences. `is_warning`: it works, and a person should look at it."""

    node: Node
    sentences: tuple[str, ...]
    is_warning: bool = False


def troubled_nodes(now: datetime, *, cluster: Cluster | None = None) -> list[Troubled]:
    """Return the nodes with an open fault, in quarantine or in maintenance, then those that fail too often."""
    rows = _out_of_use().select_related("cluster").prefetch_related(*_details())
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    nodes = list(rows.order_by("cluster__name", "name")[:MOST])
    found = [Troubled(node, sentences) for node in nodes if (sentences := tuple(_sentences(node, now)))]
    often = [node.pk for node in nodes if node.fails_often]
    warned = [Troubled(node, (_too_often(faults),), is_warning=True) for node, faults in frequent(often, now)]
    return [*warned, *found]


def frequent(node_ids: Iterable[int], now: datetime) -> list[tuple[Node, int]]:
    """Return the nodes that work though they failed too often lately, each with its faults."""
    most, wanted = settings.MUSTER_QUARANTINE_FAULTS, set(node_ids)
    if most <= 0 or not wanted:
        return []
    since = now - timedelta(seconds=settings.MUSTER_QUARANTINE_WINDOW_S)
    counted = NodeFault.objects.filter(kind__in=NodeFault.COUNTED, detected_at__gt=since, node__in=wanted)
    rows = counted.filter(node__quarantined_at=None, node__gone_at=None).values_list(
        "node_id", "detected_at", "kind", "node__faults_count_from"
    )
    found: dict[int, list[tuple[datetime, str]]] = defaultdict(list)
    for node_id, at, kind, counts_from in rows:
        if counts_from is None or at > counts_from:
            found[node_id].append((at, kind))
    often = {node_id: count for node_id, faults in found.items() if (count := _breakdowns(faults)) >= most}
    nodes = Node.objects.filter(pk__in=often).select_related("cluster").order_by("cluster__name", "name")
    return [(node, often[node.pk]) for node in nodes]


def _breakdowns(faults: Sequence[tuple[datetime, str]]) -> int:
    """Count faults; XIDs that come with another fault, or with each other, are one breakdown seen several times."""
    others = [at for at, kind in faults if kind != NodeFault.Kind.XID]
    alone: list[datetime] = []
    for at in sorted(at for at, kind in faults if kind == NodeFault.Kind.XID):
        if all(abs(at - other) > ONE_BREAKDOWN for other in (*others, *alone[-1:])):
            alone.append(at)
    return len(others) + len(alone)


def fault_sentence(fault: NodeFault) -> str:
    """Return what is or was wrong, with the words of the cluster where it has some."""
    what = str(fault.get_kind_display())
    detail = fault.detail
    if fault.kind == NodeFault.Kind.DEVICES:
        numbers = {"from": detail.get("from", "?"), "to": detail.get("to", "?"), "flavor": fault.subject}
        return _("%(from)s %(flavor)s GPUs became %(to)s while they were in use") % numbers
    if fault.kind == NodeFault.Kind.XID:
        return _xid_sentence(detail.get("gpu", "?"), detail.get("xid", "?"))
    words = [fault.subject, *(str(detail[key]) for key in ("reason", "message") if detail.get(key))]
    said = ": ".join(dict.fromkeys(word for word in words if word))
    return f"{what} ({said})" if said else what


def _xid_sentence(gpu: object, xid: object) -> str:
    meaning = {
        48: _("uncorrectable memory error"),
        63: _("a memory row was remapped"),
        64: _("a memory row could not be remapped"),
        74: _("NVLink error"),
        79: _("the GPU has fallen off the bus"),
        92: _("many correctable memory errors"),
        94: _("contained memory error"),
        95: _("uncontained memory error"),
    }.get(xid if isinstance(xid, int) else 0)
    sentence = _("GPU %(gpu)s reported XID %(xid)s") % {"gpu": gpu, "xid": xid}
    return f"{sentence} ({meaning})" if meaning else sentence


def _out_of_use() -> QuerySet[Node]:
    out = NEEDS_LOOK | Q(pk__in=NodeFault.objects.filter(cleared_at=None).values("node_id"))
    return Node.objects.filter(out).filter(Q(gone_at=None) | Q(maintenance_at__isnull=False))


def _details() -> Sequence[Any]:
    standing = NodeFault.objects.filter(cleared_at=None).order_by("detected_at")
    live = NodeMaintenance.objects.filter(ended_at=None)
    return (
        Prefetch("faults", standing, to_attr="open_faults"),
        Prefetch("maintenances", live, to_attr="live_maintenances"),
    )


def _sentences(node: Node, now: datetime) -> list[str]:
    lines = [fault_sentence(fault) for fault in getattr(node, "open_faults", ())]
    if node.quarantined_at is not None:
        who = node.quarantined_by or _("Muster")
        lines.append(_("quarantined by %(who)s: %(why)s") % {"who": who, "why": node.quarantine_reason or "-"})
    asked: list[NodeMaintenance] = getattr(node, "live_maintenances", [])
    return [*lines, *(_("maintenance: %(state)s") % {"state": each.state(now).label} for each in asked)]


def _too_often(faults: int) -> str:
    hours = f"{settings.MUSTER_QUARANTINE_WINDOW_S / 3600:g}"
    share = f"{settings.MUSTER_QUARANTINE_SHARE * 100:g}"
    text = ngettext(
        "%(faults)d fault within %(hours)s h, and yet it works: Muster quarantines at most %(share)s %% of the nodes "
        "of a flavor by itself. Look for what they have in common, or quarantine it yourself.",
        "%(faults)d faults within %(hours)s h, and yet it works: Muster quarantines at most %(share)s %% of the nodes "
        "of a flavor by itself. Look for what they have in common, or quarantine it yourself.",
        faults,
    )
    return text % {"faults": faults, "hours": hours, "share": share}
