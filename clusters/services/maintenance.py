"""Take a node out of use for its maintenance, and back. The floor above empties it at the deadline."""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from clusters.models import Node, NodeEvent, NodeMaintenance
from clusters.services.quarantine import target_of_node
from portal.core import clock
from portal.core.audit import Actor, record
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError, InvalidInputError
from portal.core.publish import publish

FURTHEST = timedelta(days=30)
# What a clock that is late may send; a date of yesterday is a mistake, which must not stop runs.
LATE = timedelta(minutes=5)
MAX_REASON = 300


@transaction.atomic
def ask_for_maintenance(*, actor: Actor, node: Node, deadline_at: datetime | None, reason: str = "") -> NodeMaintenance:
    """Place nothing new on the node, and stop what is there at the deadline; None: at once.

    Asked again before the node is empty it moves the deadline. Raise DomainError for a node that left or is empty
    already, InvalidInputError for a deadline that has passed or is too far away.
    """
    now = clock.now()
    if node.gone_at is not None:
        raise DomainError(_("The node left its cluster."), code="node_gone")
    deadline = max(deadline_at or now, now)
    if deadline_at is not None and deadline_at < now - LATE:
        raise InvalidInputError({"deadline_at": [_("It has passed; without a deadline the node is emptied at once.")]})
    if deadline > now + FURTHEST:
        raise InvalidInputError({"deadline_at": [_("At most %(days)d days from now.") % {"days": FURTHEST.days}]})
    # One writer at a time, so that two requests make one maintenance.
    Node.objects.select_for_update(no_key=True).get(pk=node.pk)
    live = NodeMaintenance.objects.filter(node=node, ended_at=None).first()
    if live is not None and live.drained_at is not None:
        raise DomainError(_("The node is empty, and in maintenance."), code="in_maintenance")
    before = {"deadline_at": live.deadline_at.isoformat()} if live else {}
    values = {"deadline_at": deadline, "reason": reason[:MAX_REASON]}
    if live is None:
        live = NodeMaintenance.objects.create(node=node, asked_by=actor.name, asked_at=now, **values)
    else:
        NodeMaintenance.objects.filter(pk=live.pk, drained_at=None, ended_at=None).update(**values)
        live.deadline_at, live.reason = deadline, reason[:MAX_REASON]
    Node.objects.filter(pk=node.pk).update(maintenance_at=deadline)
    after = {"deadline_at": deadline.isoformat(), "reason": reason[:MAX_REASON]}
    _note(node, NodeEvent.Kind.MAINTENANCE, {"by": actor.name, "deadline": f"{deadline:%Y-%m-%d %H:%M} UTC"}, now)
    record(actor, "node.maintenance_asked", target_of_node(node), before=before, after=after)
    enqueue("jobs.tasks.reconcile")
    return live


@transaction.atomic
def end_maintenance(*, actor: Actor, node: Node) -> None:
    """Open the node again, before it was emptied or after. What was stopped meanwhile stays stopped."""
    now = clock.now()
    live = NodeMaintenance.objects.select_for_update(no_key=True).filter(node=node, ended_at=None).first()
    if live is None:
        raise DomainError(_("The node is not in maintenance."), code="not_in_maintenance")
    NodeMaintenance.objects.filter(pk=live.pk).update(ended_at=now, ended_by=actor.name)
    Node.objects.filter(pk=node.pk).update(maintenance_at=None)
    _note(node, NodeEvent.Kind.REOPENED, {"by": actor.name}, now)
    action = "node.maintenance_cancelled" if live.drained_at is None else "node.maintenance_ended"
    record(actor, action, target_of_node(node))
    enqueue("jobs.tasks.run_cycle")


@transaction.atomic
def note_drained(*, maintenance: NodeMaintenance) -> bool:
    """Nothing of ours is left on the node. False: that was said before, or nobody wants to know any more."""
    now = clock.now()
    rows = NodeMaintenance.objects.filter(pk=maintenance.pk, drained_at=None, ended_at=None)
    if not rows.update(drained_at=now):
        return False
    _note(maintenance.node, NodeEvent.Kind.DRAINED, {}, now)
    return True


def _note(node: Node, kind: str, detail: dict[str, object], now: datetime) -> None:
    NodeEvent.objects.create(node=node, at=now, kind=kind, detail=detail)
    publish(f"cluster:{node.cluster_id}", node.cluster.name)
