"""Teams: who is in them, who is invited; for administrators also making new ones."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.core.errors import DomainError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.forms import InvitationForm, OrganizationForm, RoleForm, TeamForm
from portal.identity.models import Invitation, Membership, Team
from portal.identity.permissions import (
    administrator_required,
    can_manage_members,
    get_managed_team_or_404,
    get_team_or_404,
)
from portal.identity.selectors import members_of, teams_with_sizes
from portal.identity.services import invitations, members
from portal.identity.services import teams as service
from portal.identity.views.acts import act


@login_required
@require_GET
def teams(request: Request) -> HttpResponse:
    """List the teams that the person may see."""
    return render(request, "identity/teams.html", {"teams": teams_with_sizes(request.user), "roles": request.roles})


@login_required
@require_GET
def team(request: Request, slug: str) -> HttpResponse:
    """Show who is in the team; who manages it also sees the invitations."""
    return _show(request, get_team_or_404(request, slug))


@never_cache
@login_required
@require_POST
def invite(request: Request, slug: str) -> HttpResponse:
    """Invite an address, and show the link in this one answer."""
    team = get_managed_team_or_404(request, slug)
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _show(request, team, form=form, status=422)
    try:
        invited = invitations.invite(
            actor=actor_of(request), team=team, link_to=lambda secret: _link(request, secret), **form.cleaned_data
        )
    except DomainError as refusal:
        add_refusal(form, refusal)
        return _show(request, team, form=form, status=refusal.status)
    return _show(request, team, invited=invited, status=201)


@login_required
@require_POST
def revoke_invitation(request: Request, slug: str, invitation_id: int) -> HttpResponse:
    """End an open invitation."""
    team = get_managed_team_or_404(request, slug)
    invitation = get_object_or_404(Invitation, team=team, pk=invitation_id)
    return act(
        request,
        lambda: invitations.revoke_invitation(actor=actor_of(request), invitation=invitation),
        done=_("The invitation is closed."),
        back=_page(team),
    )


@login_required
@require_POST
def change_role(request: Request, slug: str, user_id: int) -> HttpResponse:
    """Give a member another role."""
    team = get_managed_team_or_404(request, slug)
    membership = get_object_or_404(Membership, team=team, user_id=user_id)
    role = request.POST.get("role", "")
    return act(
        request,
        lambda: members.change_role(actor=actor_of(request), membership=membership, role=role),
        done=_("The role was changed."),
        back=_page(team),
    )


@login_required
@require_POST
def remove_member(request: Request, slug: str, user_id: int) -> HttpResponse:
    """Take a member out, or leave oneself."""
    is_self = request.user.pk == user_id
    team = get_team_or_404(request, slug) if is_self else get_managed_team_or_404(request, slug)
    membership = get_object_or_404(Membership, team=team, user_id=user_id)
    return act(
        request,
        lambda: members.remove_member(actor=actor_of(request), membership=membership),
        done=_("You have left the team.") if is_self else _("The member was removed."),
        back="identity:teams" if is_self else _page(team),
    )


@administrator_required
@require_http_methods(["GET", "POST"])
def new_team(request: Request) -> HttpResponse:
    """Make a team."""
    form = TeamForm(request.POST or None)
    if form.is_valid():
        try:
            made = service.create_team(actor=actor_of(request), **form.cleaned_data)
        except DomainError as refusal:
            add_refusal(form, refusal)
        else:
            return redirect(_page(made))
    status = 422 if form.is_bound else 200
    return render(request, "identity/new.html", {"form": form, "title": _("New team")}, status=status)


@administrator_required
@require_http_methods(["GET", "POST"])
def new_organization(request: Request) -> HttpResponse:
    """Make an organization."""
    form = OrganizationForm(request.POST or None)
    if form.is_valid():
        try:
            service.create_organization(actor=actor_of(request), **form.cleaned_data)
        except DomainError as refusal:
            add_refusal(form, refusal)
        else:
            return redirect("identity:new_team")
    status = 422 if form.is_bound else 200
    return render(request, "identity/new.html", {"form": form, "title": _("New organization")}, status=status)


def _show(
    request: Request,
    team: Team,
    *,
    form: InvitationForm | None = None,
    invited: invitations.Invited | None = None,
    status: int = 200,
) -> HttpResponse:
    manages = can_manage_members(request.user, team)
    context = {
        "team": team,
        "members": members_of(team),
        "manages": manages,
        "form": form or InvitationForm(),
        "role_form": RoleForm(auto_id=False),
        "invited": invited,
        "spaces": import_string(settings.MUSTER_SPACES_OF_TEAM)(team),
        # Decided here, not in the template: a fragment of the page could be asked for alone.
        "invitations": invitations.open_invitations().filter(team=team).order_by("-id") if manages else None,
    }
    return render(request, "identity/team.html", context, status=status)


def _page(team: Team) -> str:
    return reverse("identity:team", args=[team.slug])


def _link(request: HttpRequest, secret: str) -> str:
    return request.build_absolute_uri(reverse("identity:invitation", args=[secret]))
