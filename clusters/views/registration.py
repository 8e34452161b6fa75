"""Pages on which administrators register clusters and set their topology levels."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from clusters.forms import ClusterEditForm, ClusterForm, LevelsForm, levels_of
from clusters.models import Cluster
from clusters.services.registration import MAX_LEVELS, Level, register_cluster, set_levels, update_cluster
from portal.core.errors import DomainError, StaleEditError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.permissions import administrator_required

# What the editor offers for a new cluster: the labels that many installations use.
SUGGESTED = (Level("block", "topology.kubernetes.io/block"), Level("rack", "topology.kubernetes.io/rack"))


@administrator_required
@sensitive_post_parameters("kubeconfig")
@require_http_methods(["GET", "POST"])
def new(request: Request) -> HttpResponse:
    """Register a cluster by its kubeconfig."""
    if request.method == "GET":
        return _show_new(request, ClusterForm(), SUGGESTED)
    form, levels = ClusterForm(request.POST), levels_of(request.POST)
    if not form.is_valid():
        return _show_new(request, form, levels, status=422)
    try:
        cluster = register_cluster(actor=actor_of(request), levels=levels, **form.cleaned_data)
    except DomainError as refusal:
        add_refusal(form, refusal)
        return _show_new(request, form, levels, status=refusal.status)
    messages.success(request, _("%(name)s is registered. Its nodes appear within seconds.") % {"name": cluster.name})
    return redirect("clusters:detail", name=cluster.name)


@administrator_required
@sensitive_post_parameters("kubeconfig")
@require_http_methods(["GET", "POST"])
def edit(request: Request, name: str) -> HttpResponse:
    """Change the way to a cluster, or whether it takes part."""
    cluster = get_object_or_404(Cluster, name=name)
    if request.method == "GET":
        stored = {field: getattr(cluster, field) for field in ("version", "exporter_url", "is_enabled")}
        return _show_edit(request, cluster, ClusterEditForm(initial=stored))
    form = ClusterEditForm(request.POST)
    if not form.is_valid():
        return _show_edit(request, cluster, form, status=422)
    try:
        update_cluster(actor=actor_of(request), cluster=cluster, **form.cleaned_data)
    except DomainError as refusal:
        add_refusal(form, refusal)
        stale = refusal if isinstance(refusal, StaleEditError) else None
        return _show_edit(request, cluster, form, stale=stale, status=refusal.status)
    messages.success(request, _("Saved."))
    return redirect("clusters:detail", name=name)


@administrator_required
@require_http_methods(["GET", "POST"])
def levels(request: Request, name: str) -> HttpResponse:
    """Set the topology levels of a cluster, widest first."""
    cluster = get_object_or_404(Cluster, name=name)
    if request.method == "GET":
        return _show_levels(request, cluster, LevelsForm(initial={"version": cluster.version}), _stored(cluster))
    form, given = LevelsForm(request.POST), levels_of(request.POST)
    if not form.is_valid():
        return _show_levels(request, cluster, form, given, status=422)
    try:
        set_levels(actor=actor_of(request), cluster=cluster, version=form.cleaned_data["version"], levels=given)
    except DomainError as refusal:
        add_refusal(form, refusal)
        stale = refusal if isinstance(refusal, StaleEditError) else None
        return _show_levels(request, cluster, form, given, stale=stale, status=refusal.status)
    messages.success(request, _("Saved."))
    return redirect("clusters:detail", name=name)


def _show_new(request: Request, form: ClusterForm, given: Sequence[Level], *, status: int = 200) -> HttpResponse:
    context = {"form": form, "levels": given, "most_levels": MAX_LEVELS}
    return render(request, "clusters/new.html", context, status=status)


def _show_edit(
    request: Request,
    cluster: Cluster,
    form: ClusterEditForm,
    *,
    stale: StaleEditError | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"cluster": cluster, "form": form, "stale": stale}
    return render(request, "clusters/edit.html", context, status=status)


def _show_levels(
    request: Request,
    cluster: Cluster,
    form: LevelsForm,
    given: Sequence[Level],
    **options: Any,
) -> HttpResponse:
    stale = options.get("stale")
    context = {
        "cluster": cluster,
        "form": form,
        "levels": given,
        "stale": stale,
        "theirs": _stored(cluster) if stale else (),
        "most_levels": MAX_LEVELS,
    }
    return render(request, "clusters/levels.html", context, status=options.get("status", 200))


def _stored(cluster: Cluster) -> list[Level]:
    return [Level(level.name, level.label_key) for level in cluster.levels.all()]
