"""The priority ladder in the policy console."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.audit import Actor
from portal.core.errors import DomainError, StaleEditError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.permissions import administrator_required
from quotas.forms import GrantForm, PriorityForm, VersionForm
from quotas.models import PriorityClass
from quotas.services import priority
from quotas.services.priority import PriorityValues
from quotas.views import console

_FIELDS = ("name", "value", "description", "is_open", "is_default")


@administrator_required
@require_POST
def add(request: Request) -> HttpResponse:
    """Add a rung."""
    return console.add(request, PriorityForm(request.POST), _create, "priority_form")


@administrator_required
@require_http_methods(["GET", "POST"])
def edit(request: Request, pk: int) -> HttpResponse:
    """Change a rung: the page with its form, and the teams that may use it."""
    rung = get_object_or_404(PriorityClass, pk=pk)
    if request.method == "GET":
        stored = {name: getattr(rung, name) for name in (*_FIELDS, "version")}
        return _show(request, rung, PriorityForm(initial=stored))
    form = PriorityForm(request.POST)
    form.fields["version"].required = True
    if not form.is_valid():
        return _show(request, rung, form, status=422)
    values = PriorityValues(**{name: form.cleaned_data[name] for name in _FIELDS})
    try:
        priority.edit_priority(
            actor=actor_of(request), rung=rung, values=values, expected_version=form.cleaned_data["version"]
        )
    except DomainError as refusal:
        add_refusal(form, refusal)
        stale = refusal if isinstance(refusal, StaleEditError) else None
        return _show(request, get_object_or_404(PriorityClass, pk=pk), form, stale=stale, status=refusal.status)
    return redirect("quotas:console")


@administrator_required
@require_POST
def grant(request: Request, pk: int) -> HttpResponse:
    """Say which teams may use a rung."""
    rung = get_object_or_404(PriorityClass, pk=pk)
    return console.act(request, GrantForm(request.POST), lambda **values: priority.set_grants(rung=rung, **values))


@administrator_required
@require_POST
def remove(request: Request, pk: int) -> HttpResponse:
    """Delete a rung."""
    rung = get_object_or_404(PriorityClass, pk=pk)
    return console.act(
        request, VersionForm(request.POST), lambda **values: priority.delete_priority(rung=rung, **values)
    )


def _create(*, actor: Actor, **cleaned: Any) -> PriorityClass:
    values = PriorityValues(**{name: cleaned[name] for name in _FIELDS})
    return priority.create_priority(actor=actor, values=values)


def _show(
    request: Request,
    rung: PriorityClass,
    form: PriorityForm,
    *,
    stale: StaleEditError | None = None,
    status: int = 200,
) -> HttpResponse:
    granted = list(rung.grants.values_list("team__slug", flat=True))
    grants = GrantForm(initial={"teams": granted, "version": rung.version}, auto_id="grant_%s")
    context = {"rung": rung, "form": form, "grants": grants, "stale": stale}
    return render(request, "quotas/priority.html", context, status=status)
