"""All clusters at a glance: how busy each GPU is, and what could start now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from clusters.models import Cluster
from clusters.selectors import telemetry
from clusters.selectors.clusters import enabled_clusters, state_of
from clusters.selectors.gangs import FreeNow, free_now
from clusters.selectors.heat import MOST_CELLS, Map, Tally, by_node, heat_map
from clusters.selectors.topology import Domain, cluster_maps
from clusters.views.clusters import address, flavor_chips
from portal.core import clock
from portal.core.http import Request
from portal.core.publish import stream_url

VIEWS = ("map", "table")
# A stream takes so many topics; what the page shows of further clusters comes with the next word of any other.
MOST_TOPICS = 20


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """One cluster as the fleet shows it."""

    cluster: Cluster
    state: str
    heat: Map


@login_required
@require_GET
def fleet(request: Request) -> HttpResponse:
    """Show all clusters, or `?cluster=` alone; `?flavor=` shows these GPUs alone; `?view=table` the same in numbers."""
    clusters = list(enabled_clusters())
    name, flavor = request.GET.get("cluster", ""), request.GET.get("flavor", "")
    shown = [cluster for cluster in clusters if name in ("", cluster.name)]
    maps = _maps(shown, cluster_maps(shown), flavor)
    total = sum((each.heat.tally for each in maps), Tally())
    view = request.GET.get("view", "")
    free = free_now(clock.now())
    context = {
        "maps": [_small(each) for each in maps] if total.gpus > MOST_CELLS else maps,
        "is_by_node": total.gpus > MOST_CELLS,
        "total": total,
        "largest": _largest(free, flavor) if not name else None,
        "view": view if view in VIEWS else "map",
        "tabs": _tabs(request, view),
        "chips": _chips(request, clusters, [row.name for row in free.flavors]),
        "clear_url": "?" if name or flavor else "",
        "live_url": stream_url(*_topics(shown)),
    }
    return render(request, "clusters/fleet.html#live" if request.htmx else "clusters/fleet.html", context)


def _maps(shown: Sequence[Cluster], roots: Mapping[int, Domain], flavor: str) -> list[ClusterMap]:
    now = clock.now()
    measured = telemetry.latest_of_holders([cluster.pk for cluster in shown])
    states = {cluster.pk: state_of(cluster, now) for cluster in shown}
    return [
        ClusterMap(
            cluster,
            states[cluster.pk],
            heat_map(roots[cluster.pk], measured, is_stale=states[cluster.pk] == "stale", flavor=flavor),
        )
        for cluster in shown
    ]


def _small(each: ClusterMap) -> ClusterMap:
    return ClusterMap(each.cluster, each.state, by_node(each.heat))


def _largest(free: FreeNow, flavor: str) -> object:
    if not flavor:
        return free.largest
    return next((row for row in free.flavors if row.name == flavor and row.gang), None)


def _tabs(request: Request, view: str) -> list[dict[str, Any]]:
    words = {"map": _("Map"), "table": _("Table")}
    current = view if view in VIEWS else "map"
    return [
        {"label": word, "url": address(request, view="" if name == "map" else name), "is_current": name == current}
        for name, word in words.items()
    ]


def _chips(request: Request, clusters: Sequence[Cluster], flavors: Sequence[str]) -> list[dict[str, Any]]:
    name = request.GET.get("cluster", "")
    options = [("", _("All clusters")), *((cluster.name, cluster.name) for cluster in clusters)]
    menu = {
        "label": name or _("All clusters"),
        "is_active": bool(name),
        "options": [
            {"label": label, "url": address(request, cluster=value), "is_active": value == name}
            for value, label in options
        ],
    }
    return [menu, *flavor_chips(request, flavors, request.GET.get("flavor", ""))]


def _topics(shown: Sequence[Cluster]) -> list[str]:
    topics = [f"{kind}:{cluster.pk}" for cluster in shown for kind in ("cluster", "telemetry")]
    return topics[:MOST_TOPICS] or ["clusters"]
