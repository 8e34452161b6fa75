"""What a person may do in a team. What nobody allows here is not allowed."""

from django.shortcuts import get_object_or_404

from portal.core.http import Request
from portal.identity.models import Membership, Team, User
from portal.identity.selectors import visible_teams

Role = Membership.Role


def role_in(user: User, team: Team) -> str | None:
    """Return the person's role in the team, or None for a stranger."""
    return Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()


def can_view_team(user: User, team: Team) -> bool:
    """Return whether the team exists for this person."""
    return user.is_platform_admin or role_in(user, team) is not None


def can_submit(user: User, team: Team) -> bool:
    """Return whether the person may start, change and stop the team's jobs."""
    return role_in(user, team) in (Role.OWNER, Role.MEMBER)


def can_manage_members(user: User, team: Team) -> bool:
    """Return whether the person may invite, change roles and remove."""
    return user.is_platform_admin or role_in(user, team) == Role.OWNER


def can_read_audit(user: User, team: Team) -> bool:
    """Return whether the person may read who did what in the team."""
    return can_manage_members(user, team)


def get_team_or_404(request: Request, slug: str) -> Team:
    """Return the team if the person may see it; a foreign one is as missing as one that never was."""
    return get_object_or_404(visible_teams(request.user), slug=slug)
