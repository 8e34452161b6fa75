"""What a person may do in a team. What nobody allows here is not allowed."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from portal.core.http import Request
from portal.identity.models import Membership, Team, User
from portal.identity.selectors import audited_teams, visible_teams

Role = Membership.Role
P = ParamSpec("P")


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


def can_read_audit(user: User) -> bool:
    """Return whether there is a log that the person may read: everyone's, or an own team's."""
    return user.is_platform_admin or audited_teams(user).exists()


def get_team_or_404(request: HttpRequest, slug: str) -> Team:
    """Return the team if the person may see it; a foreign one is as missing as one that never was."""
    return get_object_or_404(visible_teams(cast("User", request.user)), slug=slug)


def get_managed_team_or_404(request: HttpRequest, slug: str) -> Team:
    """Return the team if the person manages its members. Raise PermissionDenied for one that they only see."""
    team = get_team_or_404(request, slug)
    if not can_manage_members(cast("User", request.user), team):
        raise PermissionDenied
    return team


def administrator_required(
    view: Callable[Concatenate[Request, P], HttpResponse],
) -> Callable[Concatenate[Request, P], HttpResponse]:
    """Let only administrators of the platform into a page; others get 403, visitors the sign-in page."""

    @wraps(view)
    def guarded(request: Request, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_platform_admin:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return cast("Callable[Concatenate[Request, P], HttpResponse]", login_required(guarded))
