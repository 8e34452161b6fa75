"""The page of one job: the answer first, then its parts as tabs, and what people may do to it."""

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.dispatch.render import objects_of
from jobs.jobspec import yaml_text
from jobs.models import Job
from jobs.permissions import can_control
from jobs.selectors.charts import WINDOWS, charts_of
from jobs.selectors.detail import JobPage, changes_of, facts_of, job_page, visible_job
from jobs.selectors.documents import endpoint_of, rack_of
from jobs.selectors.events import lines_of
from jobs.selectors.jobs import jobs_visible_to
from jobs.selectors.schedules import panel_of
from jobs.services import control, schedules
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.core.publish import stream_url
from portal.identity.actors import actor_of
from portal.identity.models import Membership

Context = dict[str, Any]
RECENT_EVENTS = 8
TAILS = (100, 500, 2000)


@login_required
@require_GET
def job(request: Request, uid: str) -> HttpResponse:
    """Show a job; `?tab=` chooses the part below the answer."""
    shown = get_object_or_404(visible_job(request.user, uid))
    tab = request.GET.get("tab", "overview")
    if tab not in _TABS:
        raise Http404
    page = job_page(shown)
    role = request.roles.get(shown.team_id)
    context = {
        "page": page,
        "job": shown,
        "tab": tab,
        "tabs": _tabs(tab),
        "facts": facts_of(page),
        "may_control": can_control(request.user, role, shown) and not shown.is_final,
        "may_submit": role in (Membership.Role.OWNER, Membership.Role.MEMBER),
        "again_url": "jobs:new_service" if shown.is_service else "jobs:new_training",
        "token": uuid4().hex,
        "live_url": _live_url(page, tab),
        **_TABS[tab](request, page),
    }
    return render(request, "jobs/detail.html#live" if request.htmx else "jobs/detail.html", context)


@login_required
@require_POST
def cancel(request: Request, uid: str) -> HttpResponse:
    """Stop the job."""
    actor = actor_of(request)
    return _act(request, uid, _("Cancel was asked for."), lambda job: control.cancel_job(actor=actor, job=job))


@login_required
@require_POST
def scale(request: Request, uid: str) -> HttpResponse:
    """Set the replicas of a service."""
    wanted = request.POST.get("replicas", "")
    # Anything that is no short number is out of range, and the service says what the range is.
    replicas = int(wanted) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 7 else -1
    done = _("%(count)d replicas are wanted now.") % {"count": replicas}
    actor = actor_of(request)
    return _act(request, uid, done, lambda job: control.scale_service(actor=actor, job=job, replicas=replicas))


@login_required
@require_POST
def pause(request: Request, uid: str) -> HttpResponse:
    """Let a schedule make no runs for now, or let it make them again."""
    is_paused = request.POST.get("paused") == "yes"
    done = _("It makes no runs until it is resumed.") if is_paused else _("It makes runs again.")
    actor = actor_of(request)

    def act(job: Job) -> None:
        schedules.pause_schedule(actor=actor, job=job, is_paused=is_paused)

    return _act(request, uid, done, act)


def _act(request: Request, uid: str, done: str, act: Callable[[Job], None]) -> HttpResponse:
    job = get_object_or_404(jobs_visible_to(request.user), uid=uid)
    if not can_control(request.user, request.roles.get(job.team_id), job):
        raise PermissionDenied
    try:
        act(job)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, done)
    return redirect("jobs:detail", uid=uid)


def _overview(_request: Request, page: JobPage) -> Context:
    return {
        "events": lines_of(page.job, RECENT_EVENTS),
        "changes": changes_of(page.job),
        "endpoint": endpoint_of(page.job, page.place),
        "schedule": panel_of(page.job, page.place),
    }


def _logs(request: Request, page: JobPage) -> Context:
    ranks = [rank.rank for rank in page.place.ranks] if page.place else []
    chosen = request.GET.get("rank", "")
    failed = page.job.outcome_rank
    return {
        "ranks": ranks,
        "rank": int(chosen) if chosen in map(str, ranks) else failed if failed in ranks else next(iter(ranks), 0),
        "tails": TAILS,
    }


def _charts(request: Request, page: JobPage) -> Context:
    window = request.GET.get("window", "15m")
    if window not in WINDOWS:
        raise Http404
    charts = charts_of(page.job, window)
    drawn = [(chart, f"{zlib.crc32(json.dumps(chart.figure).encode()):08x}") for chart in charts.charts]
    return {"charts": charts, "drawn": drawn, "windows": WINDOWS, "window": window}


def _ranks(_request: Request, page: JobPage) -> Context:
    ranks = page.place.ranks if page.place else ()
    return {"ranks": [(rank, rack_of(rank)) for rank in ranks]}


def _events(_request: Request, page: JobPage) -> Context:
    return {"events": lines_of(page.job)}


def _yaml(_request: Request, page: JobPage) -> Context:
    place = page.place
    nodes = [rank.node for rank in place.ranks] if place else []
    objects = objects_of(page.job, place.attempt, nodes) if place else []
    return {"spec_yaml": yaml_text.write(page.job.spec), "objects_yaml": yaml_text.write(*objects) if objects else ""}


_TABS: Mapping[str, Callable[[Request, JobPage], Context]] = {
    "overview": _overview,
    "logs": _logs,
    "charts": _charts,
    "ranks": _ranks,
    "events": _events,
    "yaml": _yaml,
}


def _tabs(current: str) -> list[Context]:
    words = {
        "overview": _("Overview"),
        "logs": _("Logs"),
        "charts": _("Charts"),
        "ranks": _("Ranks"),
        "events": _("Events"),
        "yaml": _("YAML"),
    }
    return [{"label": word, "url": f"?tab={name}", "is_current": name == current} for name, word in words.items()]


def _live_url(page: JobPage, tab: str) -> str:
    if page.job.is_final:
        return ""
    topics = [f"job:{page.job.uid}"]
    if page.job.state == Job.State.QUEUED or page.job.reason_code:
        # Cycles tell of new reasons and positions once a team, not once for each of its thousands of waiting jobs.
        topics.append(f"team:{page.job.team_id}")
    if tab == "charts" and page.place:
        topics.append(f"telemetry:{page.place.attempt.cluster_id}")
    return stream_url(*topics)
