"""Lists of jobs and of services, and acts on the rows that were selected."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from jobs.forms.labels import LabelForm
from jobs.models import Job
from jobs.selectors.export import MOST
from jobs.selectors.filters import FilterError, filtered
from jobs.selectors.jobs import jobs_visible_to, services_visible_to
from jobs.selectors.rows import rows_of
from jobs.services import control, selection
from jobs.services.selection import Tally
from jobs.views.chips import ALL_TEAMS, chips_of, clear_url, is_filtered
from portal.core.http import Request
from portal.core.keyset import keyset_page
from portal.core.publish import stream_url
from portal.identity.actors import actor_of

SIZE = 50


@login_required
@require_GET
def jobs(request: Request) -> HttpResponse:
    """List jobs, the newest first."""
    return _list(request, jobs_visible_to(request.user), "list")


@login_required
@require_GET
def services(request: Request) -> HttpResponse:
    """List services, the newest first."""
    return _list(request, services_visible_to(request.user), "services")


@login_required
@require_POST
def cancel_selected(request: Request) -> HttpResponse:
    """Cancel the selected jobs that the person controls."""
    actor = actor_of(request)
    tally = _each(request, lambda job: control.cancel_job(actor=actor, job=job))
    done = ngettext("Cancel asked for %(count)d job.", "Cancel asked for %(count)d jobs.", tally.done)
    return _tell(request, tally, done % {"count": tally.done})


@login_required
@require_POST
def label_selected(request: Request) -> HttpResponse:
    """Put a label on the selected jobs that the person controls."""
    form = LabelForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return HttpResponseRedirect(_back(request))
    actor, labels = actor_of(request), form.cleaned_data["label"]
    tally = _each(request, lambda job: control.label_job(actor=actor, job=job, labels=labels))
    done = ngettext("%(count)d job labelled.", "%(count)d jobs labelled.", tally.done)
    return _tell(request, tally, done % {"count": tally.done})


def _list(request: Request, visible: QuerySet[Job], page_name: str) -> HttpResponse:
    page = keyset_page(wanted(request, visible), cursor=request.GET.get("cursor"), size=SIZE)
    teams = {team.pk for team in request.teams} or {job.team_id for job in page.rows}
    context = {
        "rows": rows_of(page.rows),
        "page_name": page_name,
        "chips": chips_of(request, page_name),
        "clear_url": clear_url(request, page_name) if is_filtered(request) else "",
        "csv_most": MOST,
        "csv_url": f"{reverse(f'jobs:{page_name}_csv')}{_query(request, '')}",
        "search": request.GET.get("q", ""),
        "pager": {"newer_url": _url(request, page.previous), "older_url": _url(request, page.next)},
        "live_url": stream_url(*(f"team:{pk}" for pk in sorted(teams)[:20])) if teams else "",
    }
    return render(request, "jobs/list.html#table" if request.htmx else "jobs/list.html", context)


def wanted(request: Request, visible: QuerySet[Job]) -> QuerySet[Job]:
    """Narrow a list to what the address asks for. Raise BadRequest for a filter that is none."""
    params = {name: str(value) for name, value in request.GET.items() if value}
    team = params.pop("team", "")
    # Without a wish the list is that of the chosen team; a search looks everywhere.
    if not team and request.team and "q" not in params:
        visible = visible.filter(team=request.team)
    elif team and team != ALL_TEAMS:
        params["team"] = team
    if params.pop("mine", ""):
        visible = visible.filter(owner=request.user)
    try:
        return filtered(visible, params)
    except FilterError as refusal:
        raise BadRequest(refusal.message) from refusal


def _url(request: Request, cursor: str | None) -> str:
    return _query(request, cursor) if cursor else ""


def _query(request: Request, cursor: str) -> str:
    query = request.GET.copy()
    query["cursor"] = cursor
    if not cursor:
        del query["cursor"]
    return f"?{query.urlencode()}" if query else ""


def _each(request: Request, act: Callable[[Job], None]) -> Tally:
    uids = request.POST.getlist("job")[: selection.MOST]
    chosen = jobs_visible_to(request.user).filter(uid__in=[uid for uid in uids if "\x00" not in uid])
    return selection.each(chosen, user=request.user, roles=request.roles, act=act)


def _tell(request: Request, tally: Tally, done: str) -> HttpResponse:
    if tally.done:
        messages.success(request, done)
    if tally.not_allowed:
        text = ngettext("%(count)d is not yours to change.", "%(count)d are not yours to change.", tally.not_allowed)
        messages.warning(request, text % {"count": tally.not_allowed})
    if tally.refused:
        text = ngettext("%(count)d is as it was: %(why)s", "%(count)d are as they were: %(why)s", tally.refused)
        messages.warning(request, text % {"count": tally.refused, "why": " ".join(tally.reasons)})
    if tally == Tally():
        messages.warning(request, _("Nothing was selected."))
    return HttpResponseRedirect(_back(request))


def _back(request: Request) -> str:
    wanted = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if ours else reverse("jobs:list")
