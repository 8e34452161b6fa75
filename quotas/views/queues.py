"""Who holds what: the tree for everybody in the organization, and one queue."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from clusters.models import ResourceFlavor
from portal.core.http import Request
from quotas.permissions import can_edit_policy, get_queue_or_404, visible_organizations
from quotas.policy.document import queue_id as node_id_of
from quotas.selectors.pages import flavor_choices, queue_cells, tree_tables
from quotas.selectors.priority import priorities_for
from quotas.selectors.tree import quota_tree


@login_required
@require_GET
def queues(request: Request) -> HttpResponse:
    """Show the quota tree of the person's organizations for one flavor at a time."""
    flavors = flavor_choices()
    chosen = _chosen(flavors, request.GET.get("flavor"))
    tables = tree_tables(
        visible_organizations(request.user), [chosen] if chosen else [], [team.pk for team in request.teams]
    )
    context = {
        "tables": tables,
        "flavor": chosen,
        "chips": [_chip(flavor, is_active=flavor == chosen) for flavor in flavors],
        "can_edit": can_edit_policy(request.user),
    }
    return render(request, "quotas/queues_tree.html" if request.htmx else "quotas/queues.html", context)


@login_required
@require_GET
def queue(request: Request, queue_id: int) -> HttpResponse:
    """Show one queue: what it may hold of each flavor, where that is capped, and which priorities its team may use."""
    shown = get_queue_or_404(request.user, queue_id)
    tree = quota_tree(shown.cohort.organization_id)
    path = tree.path(node_id_of(shown.pk))
    context = {
        "queue": shown,
        "cells": queue_cells(tree, path[0], flavor_choices()),
        "above": path[:0:-1],
        "priorities": priorities_for(shown.team),
        "is_own": shown.team in request.teams,
        "can_edit": can_edit_policy(request.user),
    }
    return render(request, "quotas/queue.html", context)


def _chosen(flavors: list[ResourceFlavor], name: str | None) -> ResourceFlavor | None:
    """Return the named flavor, else the administrator's first."""
    named = (flavor for flavor in flavors if flavor.name == name)
    return next(named, flavors[0] if flavors else None)


def _chip(flavor: ResourceFlavor, *, is_active: bool) -> dict[str, object]:
    address = reverse("quotas:queues", query={"flavor": flavor.name})
    return {"label": flavor.title, "url": address, "is_active": is_active}
