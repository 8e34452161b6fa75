"""The answer while typing: what would happen to the document as it stands, and the objects that would be sent."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from jobs.engine.verdict import verdict
from jobs.views.drafts import posted_draft
from portal.core.errors import DomainError
from portal.core.http import Request


@login_required
@require_POST
def panel(request: Request) -> HttpResponse:
    """Answer with the panel beside the form."""
    draft = posted_draft(request)
    try:
        context = {"verdict": verdict(draft.request(request.user))}
    except DomainError as refusal:
        draft.refuse(refusal)
        return render(request, "jobs/preview.html", {"problems": draft.problems}, status=422)
    return render(request, "jobs/preview.html", context)


@login_required
@require_POST
def manifest(request: Request) -> HttpResponse:
    """Answer with the exact YAML of the objects, as a file."""
    draft = posted_draft(request)
    try:
        text = verdict(draft.request(request.user)).manifest
    except DomainError as refusal:
        draft.refuse(refusal)
        return render(request, "jobs/preview.html", {"problems": draft.problems}, status=422)
    response = HttpResponse(text, content_type="application/yaml")
    response["Content-Disposition"] = 'attachment; filename="muster-preview.yaml"'
    return response
