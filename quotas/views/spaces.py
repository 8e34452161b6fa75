"""The spaces of teams on a cluster: how they stand, who keeps them, what to apply. For administrators."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib import messages
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
from quotas.forms import KeepForm
from quotas.models import Space
from quotas.selectors.spaces import spaces_of, tenancy_of
from quotas.sync import wanted
from quotas.sync.wishes import ask_to_apply, keep_spaces


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
    context = {
        "cluster": cluster,
        "tenancy": tenancy_of(cluster),
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
    team = get_object_or_404(Team, slug=slug) if slug else None
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
    cluster = get_object_or_404(Cluster, name=name)
    form = KeepForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("This was not understood: load the page anew."))
        return redirect("quotas:spaces", name=name)
    try:
        keep_spaces(actor=actor_of(request), cluster=cluster, **form.cleaned_data)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("Saved."))
    return redirect("quotas:spaces", name=name)


def _yaml(space: Space, wish: Mapping[int | None, list[Json]]) -> str:
    is_wanted = space.state != Space.State.IN_STEP
    return to_yaml(wish.get(space.team_id, [])) if is_wanted else ""
