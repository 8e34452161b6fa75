"""Keep work away from nodes that fail again and again, and let them work again."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from clusters.models import Node, NodeAccelerator, NodeEvent, ResourceFlavor
from clusters.selectors.trouble import frequent
from portal.core import clock
from portal.core.audit import SYSTEM, Actor, Target, record
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError
from portal.core.publish import publish

MAX_REASON = 300


@transaction.atomic
def quarantine_node(*, actor: Actor, node: Node, reason: str) -> None:
    """Place nothing new on a node; what runs there runs on. Raise DomainError if it is quarantined or left."""
    if node.gone_at is not None:
        raise DomainError(_("The node left its cluster."), code="node_gone")
    if not _quarantine(actor, node, by=actor.name, reason=reason[:MAX_REASON], now=clock.now()):
        raise DomainError(_("The node is quarantined already."), code="quarantined")


@transaction.atomic
def release_node(*, actor: Actor, node: Node) -> None:
    """Let a node work again; faults until now are forgiven. Raise DomainError if it is not quarantined."""
    now = clock.now()
    rows = Node.objects.filter(pk=node.pk, quarantined_at__isnull=False)
    before = {"by": node.quarantined_by, "reason": node.quarantine_reason}
    if not rows.update(quarantined_at=None, quarantined_by="", quarantine_reason="", faults_count_from=now):
        raise DomainError(_("The node is not quarantined."), code="not_quarantined")
    NodeEvent.objects.create(node=node, at=now, kind=NodeEvent.Kind.RELEASED, detail={"by": actor.name})
    record(actor, "node.released", target_of_node(node), before=before)
    publish(f"cluster:{node.cluster_id}", node.cluster.name)
    enqueue("jobs.tasks.run_cycle")


def quarantine_if_frequent(node_ids: Iterable[int], now: datetime) -> None:
    """Quarantine those of the nodes that failed too often lately, inside the caller's transaction.

    Never more than a share of a flavor: what then looks like many broken nodes is more likely one fault of something
    else, and a page warns instead.
    """
    for node, faults in frequent(node_ids, now):
        if not _has_room(node):
            Node.objects.filter(pk=node.pk, fails_often=False).update(fails_often=True)
            continue
        hours = f"{settings.MUSTER_QUARANTINE_WINDOW_S / 3600:g}"
        reason = _("%(faults)d faults within %(hours)s h") % {"faults": faults, "hours": hours}
        _quarantine(SYSTEM, node, by="", reason=reason, now=now)


def target_of_node(node: Node) -> Target:
    """How the audit log names a node."""
    return Target(type="node", id=str(node.pk), label=f"{node.cluster.name}/{node.name}")


def _quarantine(actor: Actor, node: Node, *, by: str, reason: str, now: datetime) -> bool:
    rows = Node.objects.filter(pk=node.pk, quarantined_at=None)
    if not rows.update(quarantined_at=now, quarantined_by=by, quarantine_reason=reason, fails_often=False):
        return False
    detail = {"why": reason, **({"by": by} if by else {})}
    NodeEvent.objects.create(node=node, at=now, kind=NodeEvent.Kind.QUARANTINED, detail=detail)
    record(actor, "node.quarantined", target_of_node(node), after={"reason": reason})
    publish(f"cluster:{node.cluster_id}", node.cluster.name)
    return True


def _has_room(node: Node) -> bool:
    """Whether one more node of each of its flavors may be quarantined without a person."""
    flavor_ids = list(
        node.accelerators.filter(capacity__gt=0).order_by("flavor_id").values_list("flavor_id", flat=True)
    )
    # One at a time: two watchers that each see room for one more must not both take it.
    list(ResourceFlavor.objects.select_for_update(no_key=True).filter(pk__in=flavor_ids).order_by("pk"))
    share = settings.MUSTER_QUARANTINE_SHARE
    for flavor_id in flavor_ids:
        nodes = NodeAccelerator.objects.filter(flavor=flavor_id, capacity__gt=0, node__gone_at=None)
        taken = nodes.filter(node__quarantined_at__isnull=False, node__quarantined_by="").count()
        if taken + 1 > share * nodes.count():
            return False
    return bool(flavor_ids)
