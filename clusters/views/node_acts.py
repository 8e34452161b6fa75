"""What administrators do with a node: quarantine, maintenance, and the way back."""

from collections.abc import Callable
from datetime import timedelta

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from clusters.forms import MaintenanceForm, QuarantineForm
from clusters.models import Node
from clusters.services import maintenance as maintenances
from clusters.services import quarantine as quarantines
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.permissions import administrator_required


@administrator_required
@require_POST
def quarantine(request: Request, cluster_name: str, name: str) -> HttpResponse:
    """Place nothing new on the node."""
    node, form = _node(cluster_name, name), QuarantineForm(request.POST)
    if not form.is_valid():
        return _refuse(request, node, form)
    actor, reason = actor_of(request), form.cleaned_data["reason"]
    act = lambda: quarantines.quarantine_node(actor=actor, node=node, reason=reason)  # noqa: E731
    return _do(request, node, act, _("Nothing new is placed on the node; what runs there runs on."))


@administrator_required
@require_POST
def release(request: Request, cluster_name: str, name: str) -> HttpResponse:
    """Let the node work again."""
    node, actor = _node(cluster_name, name), actor_of(request)
    return _do(request, node, lambda: quarantines.release_node(actor=actor, node=node), _("The node works again."))


@administrator_required
@require_POST
def maintenance(request: Request, cluster_name: str, name: str) -> HttpResponse:
    """Empty the node at a deadline, and keep it empty."""
    node, form = _node(cluster_name, name), MaintenanceForm(request.POST)
    if not form.is_valid():
        return _refuse(request, node, form)
    actor, reason = actor_of(request), form.cleaned_data["reason"]
    deadline_at = clock.now() + timedelta(minutes=form.cleaned_data["minutes"])
    return _do(
        request,
        node,
        lambda: maintenances.ask_for_maintenance(actor=actor, node=node, deadline_at=deadline_at, reason=reason),
        _("Nothing new is placed on the node; its page says when it is empty."),
    )


@administrator_required
@require_POST
def end_maintenance(request: Request, cluster_name: str, name: str) -> HttpResponse:
    """Cancel the maintenance, or end it: the node is open again."""
    node, actor = _node(cluster_name, name), actor_of(request)
    return _do(
        request, node, lambda: maintenances.end_maintenance(actor=actor, node=node), _("The node is open again.")
    )


def _node(cluster_name: str, name: str) -> Node:
    return get_object_or_404(
        Node.objects.select_related("cluster"), cluster__name=cluster_name, name=name if name.isprintable() else ""
    )


def _do(request: Request, node: Node, act: Callable[[], object], done: str) -> HttpResponse:
    try:
        act()
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, done)
    return _back(node)


def _refuse(request: Request, node: Node, form: Form) -> HttpResponse:
    told = (f"{form[name].label}: {text}" for name, texts in form.errors.items() for text in texts)
    messages.error(request, " ".join(told))
    return _back(node)


def _back(node: Node) -> HttpResponse:
    return redirect("clusters:node", cluster_name=node.cluster.name, name=node.name)
