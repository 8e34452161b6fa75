"""Faults that the floor above finds on a node: what a kubelet refuses is seen on the pod, not on the node."""

from collections.abc import Mapping

from django.db import transaction

from clusters.models import Node, NodeEvent, NodeFault
from clusters.services.quarantine import quarantine_if_frequent
from portal.core import clock


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
