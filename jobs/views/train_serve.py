"""Start a training run or a service: one document in two tabs, an answer while typing, one job a click."""

from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from jobs.forms.layout import INFERENCE, TRAINING
from jobs.jobspec.fields import JobSpec
from jobs.selectors.jobs import jobs_visible_to
from jobs.services import intake, submit
from jobs.views.drafts import (
    FORM,
    Draft,
    as_form,
    as_yaml,
    first_draft,
    posted_draft,
    teams_of,
    templates_of,
)
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.core.rest.idempotency import Answer, digest_of, run_once
from portal.identity.actors import actor_of
from portal.identity.models import Team

_ADDRESSES = {TRAINING: "jobs:new_training", INFERENCE: "jobs:new_service"}


@login_required
@require_http_methods(["GET", "POST"])
def new_training(request: Request) -> HttpResponse:
    """Write and start a run that ends."""
    return _new(request, TRAINING)


@login_required
@require_http_methods(["GET", "POST"])
def new_service(request: Request) -> HttpResponse:
    """Write and start a service."""
    return _new(request, INFERENCE)


@login_required
@require_POST
def again(request: Request, uid: str) -> HttpResponse:
    """Start the same run once more, as it was."""
    job = get_object_or_404(jobs_visible_to(request.user), uid=uid)
    if job.team not in teams_of(request):
        raise PermissionDenied
    try:
        spec = intake.read_document(intake.document_again(job), team=job.team)
        started = _start_once(request, spec, job.team)
    except DomainError as refusal:
        messages.error(request, refusal.message)
        return redirect("jobs:detail", uid=uid)
    return redirect("jobs:detail", uid=started)


@login_required
@require_POST
def convert(request: Request) -> HttpResponse:
    """Turn the form into YAML or back; a text that no form can show is answered by its problems, 422."""
    draft = posted_draft(request)
    wanted = request.POST.get("to", draft.source)
    if wanted == draft.source != FORM:
        return HttpResponse(status=204)
    try:
        return _pane(request, draft, wanted)
    except DomainError as refusal:
        draft.refuse(refusal)
        return render(request, "jobs/new.html#problems", {"draft": draft}, status=422)


def _new(request: Request, kind: str) -> HttpResponse:
    teams = teams_of(request)
    if not teams:
        return render(request, "jobs/no_team.html", {"kind": kind}, status=403 if request.method == "POST" else 200)
    if request.method == "POST":
        return _submit(request, kind)
    team = next((team for team in teams if team == request.team), teams[0])
    return _page(request, first_draft(request, team, kind), kind)


def _submit(request: Request, kind: str) -> HttpResponse:
    draft = posted_draft(request)
    try:
        uid = _start_once(request, draft.spec(), draft.team)
    except DomainError as refusal:
        draft.refuse(refusal)
        return _page(request, draft, kind, status=422)
    return HttpResponseRedirect(reverse("jobs:detail", args=[uid]))


def _start_once(request: Request, spec: JobSpec, team: Team) -> str:
    """Start the run; the same page sent twice starts it once. Raise DomainError."""
    asked = submit.resolve(spec, team=team, reader=request.user)

    def start() -> Answer:
        job = submit.submit_job(
            actor=actor_of(request),
            owner=request.user,
            request=asked,
            warnings=intake.warnings_of(asked),
        )
        return Answer(201, {"id": job.uid})

    key = request.POST.get("token") or uuid4().hex
    # The token alone tells pages apart: a second click sends the same document, a mended one a new token.
    answer = run_once(request.user.pk, f"page-{key}"[:200], digest_of(b"page", key.encode()), start)
    return str(answer.body["id"])


def _page(request: Request, draft: Draft, kind: str, *, status: int = 200) -> HttpResponse:
    context = {
        "draft": draft,
        "form": draft.form,
        "kind": kind,
        "is_service": draft.form.kind == INFERENCE,
        "teams": teams_of(request),
        "templates": templates_of(kind),
        "template_name": request.GET.get("template", ""),
        "address": reverse(_ADDRESSES[kind]),
        "token": request.POST.get("token") or uuid4().hex,
    }
    return render(request, "jobs/new.html", context, status=status)


def _pane(request: Request, draft: Draft, wanted: str) -> HttpResponse:
    if wanted != FORM:
        return render(request, "jobs/new.html#yaml", {"yaml": as_yaml(draft)})
    form = draft.form if draft.source == FORM else as_form(draft)
    return render(request, "jobs/new.html#form", {"form": form, "is_service": form.kind == INFERENCE})
