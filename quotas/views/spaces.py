"""The spaces of teams on a cluster: how they stand, who keeps them, what to apply. For administrators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from clusters.manifests.text import to_yaml
from clusters.manifests.values import Json
from clusters.models import Cluster
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.core.publish import stream_url
from portal.identity.actors import actor_of
from portal.identity.models import Team
from portal.identity.permissions import administrator_required
from quotas.forms import GuardForm, KeepForm
from quotas.models import Space
from quotas.selectors.spaces import spaces_of, tenancy_of
from quotas.sync import wanted
from quotas.sync.wishes import ask_to_apply, keep_spaces, set_guard


@dataclass(frozen=True, slots=True)
class Row:
    """One space, and the YAML of what it should be, unless it is."""

    space: Space
    yaml: str


@administrator_required
@require_GET
def spaces(request: Request, name: str) -> HttpResponse:
    """Show every space of a cluster."""
    cluster = get_object_or_404(Cluster, name=name)
    rows = spaces_of(cluster)
    wish = wanted.to_paste() if rows else {}
    tenancy = tenancy_of(cluster)
    context = {
        "cluster": cluster,
        "tenancy": tenancy,
        "guard_form": GuardForm(initial={"guard": tenancy.guard, "version": tenancy.version}),
        "guards_yaml": to_yaml(wanted.guards_of(cluster, tenancy.guard)),
        "rows": [Row(space, _yaml(space, wish)) for space in rows],
        "rights_yaml": to_yaml(wanted.rights_of_keeping()),
        "live_url": stream_url(f"cluster:{cluster.pk}"),
    }
    return render(request, "quotas/spaces.html#live" if request.htmx else "quotas/spaces.html", context)


@administrator_required
@require_POST
def apply(request: Request, name: str) -> HttpResponse:
    """Ask for one space to be applied anew; without a team for what the cluster has for all of them."""
    cluster = get_object_or_404(Cluster, name=name)
    slug = request.POST.get("team", "")
    # The database takes no NUL, not even to look for one.
    team = get_object_or_404(Team, slug=slug if slug.isprintable() else "") if slug else None
    try:
        ask_to_apply(actor=actor_of(request), cluster=cluster, team=team)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("It is applied within seconds; what the cluster says to it appears here."))
    return redirect("quotas:spaces", name=name)


@administrator_required
@require_POST
def keep(request: Request, name: str) -> HttpResponse:
    """Say whether the portal keeps the spaces of a cluster by itself."""
    return _act(request, name, KeepForm(request.POST), keep_spaces)


@administrator_required
@require_POST
def guard(request: Request, name: str) -> HttpResponse:
    """Say what the policies of a cluster shall do about by-passes."""
    return _act(request, name, GuardForm(request.POST), set_guard)


def _act(request: Request, name: str, form: Form, service: Callable[..., None]) -> HttpResponse:
    cluster = get_object_or_404(Cluster, name=name)
    if not form.is_valid():
        messages.error(request, _("This was not understood: load the page anew."))
        return redirect("quotas:spaces", name=name)
    try:
        service(actor=actor_of(request), cluster=cluster, **form.cleaned_data)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("Saved."))
    return redirect("quotas:spaces", name=name)


def _yaml(space: Space, wish: Mapping[int | None, list[Json]]) -> str:
    is_wanted = space.state != Space.State.IN_STEP
    return to_yaml(wish.get(space.team_id, [])) if is_wanted else ""
