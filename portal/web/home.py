"""The first page: what is free, what is mine, what needs me, how busy the fleet is."""

import json
import zlib
from datetime import timedelta

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from clusters.selectors import telemetry
from clusters.selectors.gangs import free_now
from clusters.telemetry.figures import TARGET_UTILISATION, Figure, is_empty, line_figure
from jobs.selectors.home import my_jobs, quota_of
from portal.core import clock
from portal.core.http import Request
from portal.core.publish import stream_url

WINDOW = timedelta(hours=6)


@login_required
@require_GET
def home(request: Request) -> HttpResponse:
    """Show the home of the person."""
    free = free_now(clock.now())
    figure = _fleet_figure(free.clusters)
    context = {
        "free": free,
        "quota": quota_of(request.team) if request.team else [],
        "mine": my_jobs(request.user),
        "figure": figure,
        "figure_version": f"{zlib.crc32(json.dumps(figure).encode()):08x}",
        "has_figure": not is_empty(figure),
        "live_url": stream_url(*_topics(request)),
    }
    return render(request, "portal/home.html#live" if request.htmx else "portal/home.html", context)


def _fleet_figure(names: dict[int, str]) -> Figure:
    now = clock.now()
    grid = telemetry.grid(now - WINDOW, now)
    series = telemetry.cluster_series(grid)
    lines = {names[cluster_id]: values for cluster_id, values in series.items() if cluster_id in names}
    return line_figure(grid.times, dict(sorted(lines.items())), top=100, target=TARGET_UTILISATION)


def _topics(request: Request) -> list[str]:
    return [f"team:{request.team.pk}"] if request.team else ["queues"]
