"""Write the audit log. Services call it inside their transaction, so act and record stand or fall together."""

from collections.abc import Mapping
from dataclasses import dataclass

from portal.core import clock
from portal.core.models import AuditEvent


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a person (perhaps through an API token), or a process of the portal (`user_id` is None)."""

    name: str
    user_id: int | None = None
    token_id: str = ""


SYSTEM = Actor(name="muster")


@dataclass(frozen=True, slots=True)
class Target:
    """What is acted on."""

    type: str
    id: str
    label: str = ""
    team_id: int | None = None


def record(
    actor: Actor,
    action: str,
    target: Target,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEvent:
    """Append one event. `before` and `after` hold only the fields that changed, never a secret."""
    return AuditEvent.objects.create(
        at=clock.now(),
        actor_id=actor.user_id,
        actor=actor.name,
        token_id=actor.token_id,
        team_id=target.team_id,
        action=action,
        object_type=target.type,
        object_id=target.id,
        object_label=target.label,
        before=dict(before or {}),
        after=dict(after or {}),
    )
