"""What faults of nodes did to runs: the page, and the same as CSV."""

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from clusters.selectors.trouble import troubled_nodes
from jobs.models import Incident
from jobs.selectors import incidents as found
from jobs.views.export import csv_response
from portal.core import clock
from portal.core.http import Request
from portal.core.keyset import keyset_page
from portal.core.publish import stream_url

SIZE = 50


@login_required
@require_GET
def incidents(request: Request) -> HttpResponse:
    """List incidents, newest first, below the nodes that are out of use now."""
    now, rows = clock.now(), _wanted(request)
    page = keyset_page(rows, cursor=request.GET.get("cursor"), size=SIZE, order=found.NEWEST_FIRST)
    context = {
        "rows": [(row, found.standing_of(row), row.lost_gpu_s / 3600) for row in page.rows],
        "sums": found.sums(rows, now),
        "troubled": troubled_nodes(now),
        "node": request.GET.get("node", ""),
        "cluster": request.GET.get("cluster", ""),
        "query": request.GET.urlencode(),
        "pager": {"newer_url": _url(request, page.previous), "older_url": _url(request, page.next)},
        "live_url": stream_url("clusters"),
    }
    return render(request, "jobs/incidents.html#live" if request.htmx else "jobs/incidents.html", context)


@login_required
@require_GET
def incidents_csv(request: Request) -> HttpResponseBase:
    """Send the incidents as their page shows them, all pages in one."""
    return csv_response(found.csv_pieces(_wanted(request)), "incidents")


def _wanted(request: Request) -> QuerySet[Incident]:
    rows = found.incidents(request.user)
    return found.narrowed(rows, cluster=request.GET.get("cluster", ""), node=request.GET.get("node", ""))


def _url(request: Request, cursor: str | None) -> str:
    if not cursor:
        return ""
    query = request.GET.copy()
    query["cursor"] = cursor
    return f"?{query.urlencode()}"
