"""Faults that are not read off the node's own object: on a pod that its kubelet refused, or by a GPU's exporter."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db import transaction
from django.db.models import F, Sum

from clusters.models import Node, NodeAccelerator, NodeEvent, NodeFault
from clusters.services.quarantine import quarantine_if_frequent
from portal.core import clock

Kind = NodeFault.Kind


@transaction.atomic
def report_fault(*, node: Node, kind: str, detail: Mapping[str, object]) -> NodeFault:
    """Write down a fault that is over as soon as it is seen: it counts against the node, and nothing waits for it."""
    now = clock.now()
    NodeEvent.objects.create(node=node, at=now, kind=NodeEvent.Kind.FAULT, detail={"what": kind, **detail})
    fault = NodeFault.objects.create(
        node=node,
        node_uid=node.uid,
        kind=kind,
        detail=dict(detail),
        detected_at=now,
        acts_at=now,
        cleared_at=now,
    )
    quarantine_if_frequent([node.pk], now)
    return fault


def mark_faulty(node_ids: Iterable[int]) -> None:
    """Say on the nodes' rows whether a fault that stands keeps work away, inside the caller's transaction.

    A condition or taint does. So does a GPU that reported a critical XID, as long as its node goes on offering it: once
    the device plug-in has taken it away, the rest may work.
    """
    ids = set(node_ids)
    if not ids:
        return
    # Two processes write faults: locked first, each sees what the other has just written.
    list(Node.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk", flat=True))
    standing = NodeFault.objects.filter(node__in=ids, cleared_at=None)
    faulty = set(standing.filter(kind__in=(Kind.CONDITION, Kind.TAINT)).values_list("node_id", flat=True))
    faulty |= _offering_broken_gpus(ids)
    Node.objects.filter(pk__in=faulty, is_faulty=False).update(is_faulty=True)
    Node.objects.filter(pk__in=ids - faulty, is_faulty=True).update(is_faulty=False)


def _offering_broken_gpus(node_ids: Iterable[int]) -> set[int]:
    critical = NodeFault.objects.filter(node__in=node_ids, cleared_at=None, kind=Kind.XID, acts_at__isnull=False)
    broken: dict[int, set[object]] = defaultdict(set)
    for node_id, detail in critical.values_list("node_id", "detail"):
        broken[node_id].add(detail.get("gpu"))
    if not broken:
        return set()
    rows = NodeAccelerator.objects.filter(node__in=broken).values_list("node_id")
    taken = dict(rows.annotate(missing=Sum(F("capacity") - F("allocatable"))))
    return {node_id for node_id, gpus in broken.items() if len(gpus) > taken.get(node_id, 0)}
