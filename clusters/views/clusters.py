"""The list of clusters, and one cluster as a map."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from clusters.models import Cluster
from clusters.permissions import can_administer_supply
from clusters.probe.card import card_of
from clusters.selectors import telemetry
from clusters.selectors.clusters import cluster_in_detail, cluster_rows, state_of
from clusters.selectors.heat import Row, heat_map
from clusters.selectors.slots import slots_now
from clusters.selectors.topology import Domain, Holder, cluster_map
from clusters.selectors.trouble import troubled_nodes
from clusters.telemetry.charts import cluster_chart
from portal.core import clock
from portal.core.http import Request
from portal.core.publish import stream_url
from portal.identity.models import User

Context = dict[str, Any]


@login_required
@require_GET
def clusters(request: Request) -> HttpResponse:
    """List the clusters with what they have and what is free."""
    context = {
        "rows": cluster_rows(clock.now()),
        "may_administer": can_administer_supply(request.user),
        "live_url": stream_url("clusters"),
    }
    return render(request, "clusters/list.html#live" if request.htmx else "clusters/list.html", context)


@login_required
@require_GET
def cluster(request: Request, name: str) -> HttpResponse:
    """Show a cluster: `?flavor=` shows these GPUs alone, `?job=` marks the nodes of a job that the person may see."""
    found = cluster_in_detail(name)
    if found is None:
        raise Http404
    shown, levels = found.cluster, found.levels
    now = clock.now()
    root = cluster_map(shown, holders_of(shown, request.user), levels=levels)
    flavor, run = request.GET.get("flavor", ""), request.GET.get("job", "")
    state = state_of(shown, now)
    measured = telemetry.latest_of_holders([shown.pk])
    heat = heat_map(root, measured, is_stale=state != "healthy", flavor=flavor, run=run)
    context = {
        "cluster": shown,
        "state": state,
        "levels_text": " > ".join([*(level.name for level in levels), _("node")]),
        "heat": heat,
        "slots": slots_now(root, flavor=flavor) if state == "healthy" else [],
        "chips": _chips(request, root, flavor),
        "mine": _mine(heat.rows, run),
        "clear_job_url": address(request, job=""),
        "chart": cluster_chart(shown, now),
        "troubled": troubled_nodes(now, cluster=shown) if any(node.needs_look for node in root.all_nodes) else [],
        "checks": card_of(found.findings, request.user),
        "may_administer": can_administer_supply(request.user),
        "live_url": stream_url(f"cluster:{shown.pk}", f"telemetry:{shown.pk}"),
    }
    return render(request, "clusters/detail.html#live" if request.htmx else "clusters/detail.html", context)


def holders_of(shown: Cluster, user: User, **options: int) -> Mapping[int, Sequence[Holder]]:
    """Ask the floor above who holds GPUs of the cluster, as far as the person may know."""
    answer: Mapping[int, Sequence[Holder]] = import_string(settings.MUSTER_GPU_HOLDERS)(shown, user, **options)
    return answer


def address(request: Request, **changes: str) -> str:
    """Return the address of this page with other filters; an empty one is left out."""
    query = {name: values for name, values in request.GET.lists() if name not in changes}
    query |= {name: [value] for name, value in changes.items() if value}
    filters = request.GET.copy()
    filters.clear()
    for name, values in query.items():
        filters.setlist(name, values)
    return f"?{filters.urlencode()}"


def flavor_chips(request: Request, names: Sequence[str], chosen: str) -> list[Context]:
    """Return one chip a flavor, and one for all of them."""
    choices = [("", _("All flavors")), *((name, name) for name in names)]
    return [
        {"label": label, "url": address(request, flavor=name), "is_active": name == chosen} for name, label in choices
    ]


def _chips(request: Request, root: Domain, chosen: str) -> list[Context]:
    names = list(dict.fromkeys(cell.flavor for node in root.all_nodes for cell in node.cells))
    return flavor_chips(request, sorted(names), chosen) if len(names) > 1 or chosen else []


def _mine(rows: Sequence[Row], run: str) -> Context | None:
    """Return what the marked job holds here; None when no job is asked for."""
    if not run:
        return None
    held = [(row.name, holder) for row in rows if row.is_mine for holder in row.holders if holder.run == run]
    return {
        "holder": held[0][1] if held else None,
        "nodes": len(held),
        "gpus": sum(holder.gpus for _name, holder in held),
    }
