"""Who is in a team, in which role. A team that has an owner keeps one."""

from django.db import transaction
from django.utils.translation import gettext as _

from portal.core import audit
from portal.core.audit import Actor, Target
from portal.core.errors import DomainError, InvalidInputError
from portal.identity.models import Membership, Team, User

Role = Membership.Role


class LastOwnerError(DomainError):
    """The team would have nobody left who may manage it."""

    code = "last_owner"

    def __init__(self) -> None:
        super().__init__(_("This is the team's last owner. Make somebody else an owner first."))


@transaction.atomic
def change_role(*, actor: Actor, membership: Membership, role: str) -> None:
    """Give a member another role. Raise LastOwnerError, or DomainError if the member is gone meanwhile."""
    if role not in Role.values:
        raise InvalidInputError({"role": [_("Choose owner, member or viewer.")]})
    row = _locked(membership)
    if row.role == role:
        return
    if row.role == Role.OWNER:
        _refuse_for_last_owner(row)
    Membership.objects.filter(pk=row.pk).update(role=role)
    audit.record(
        actor, "member.role_changed", member_target(row.team, row.user), before={"role": row.role}, after={"role": role}
    )


@transaction.atomic
def remove_member(*, actor: Actor, membership: Membership) -> None:
    """Take a member out of the team; a person may also take themselves out. Raise LastOwnerError."""
    row = _locked(membership)
    if row.role == Role.OWNER:
        _refuse_for_last_owner(row)
    target, before = member_target(row.team, row.user), {"role": row.role}
    row.delete()
    audit.record(actor, "member.removed", target, before=before)


def member_target(team: Team, user: User) -> Target:
    """Return the member as the object of an act."""
    return Target(type="member", id=str(user.pk), label=user.get_username(), team_id=team.pk)


def _locked(membership: Membership) -> Membership:
    """Lock the team, so that two owners cannot remove each other at once, and read the membership again."""
    Team.objects.select_for_update(no_key=True).get(pk=membership.team_id)
    row = Membership.objects.select_related("team", "user").filter(pk=membership.pk).first()
    if row is None:
        raise DomainError(_("This member has left the team."), code="member_gone")
    return row


def _refuse_for_last_owner(row: Membership) -> None:
    owners = Membership.objects.filter(team_id=row.team_id, role=Role.OWNER)
    if not owners.exclude(pk=row.pk).exists():
        raise LastOwnerError
