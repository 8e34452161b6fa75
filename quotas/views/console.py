"""The policy console: quota tree and ladder on one page, edited in place.

Every act is a plain form that works without JavaScript. With htmx the same addresses answer with the tree alone,
so that the rest of the page stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Model
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from clusters.models import ResourceFlavor
from portal.core.errors import DomainError, StaleEditError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.models import Organization
from portal.identity.permissions import administrator_required
from quotas.forms import CohortForm, NameForm, PriorityForm, QueueForm, QuotaForm, VersionForm
from quotas.models import Cohort, Queue
from quotas.selectors.pages import flavor_choices, ladder_with_teams, tree_tables
from quotas.services import tree


@dataclass(frozen=True, slots=True)
class OpenCell:
    """The one cell that is being edited: its form, and what was refused, with both versions if it was stale."""

    id: str
    form: QuotaForm
    stale: StaleEditError | None = None

    @property
    def errors(self) -> list[str]:
        """What is wrong with what was typed."""
        return [str(text) for texts in self.form.errors.values() for text in texts]

    @property
    def is_removal(self) -> bool:
        """Whether the person wanted to take the quota away."""
        return "remove" in self.form.data


@administrator_required
@require_GET
def console(request: Request) -> HttpResponse:
    """Show tree and ladder; `at` names the cell that gets the focus back, where an edit was given up."""
    return show(request, at=request.GET.get("at", ""))


@administrator_required
@require_http_methods(["GET", "POST"])
def quota(request: Request, kind: str, pk: int, flavor_id: int) -> HttpResponse:
    """Open a cell for editing (GET), or save it (POST): an amount, or with `remove` no quota at all."""
    owner, flavor = _owner(kind, pk), get_object_or_404(ResourceFlavor, pk=flavor_id)
    cell_id = f"quota-{kind}-{pk}-{flavor_id}"
    if request.method == "GET":
        return show(request, cell=OpenCell(cell_id, QuotaForm(initial=_stored(owner, flavor))))
    form = QuotaForm(request.POST)
    form.fields["nominal"].required = "remove" not in request.POST
    if not form.is_valid():
        return show(request, cell=OpenCell(cell_id, form), status=422)
    try:
        edit = _save(request, owner, flavor, form.cleaned_data)
    except StaleEditError as refusal:
        return show(request, cell=OpenCell(cell_id, form, stale=refusal), status=refusal.status)
    except DomainError as refusal:
        add_refusal(form, refusal)
        return show(request, cell=OpenCell(cell_id, form), status=refusal.status)
    for warning in edit.warnings:
        messages.warning(request, warning)
    return show(request, at=cell_id) if request.htmx else redirect("quotas:console")


@administrator_required
@require_POST
def add_cohort(request: Request) -> HttpResponse:
    """Add a cohort."""
    return add(request, CohortForm(request.POST), tree.create_cohort, "cohort_form")


@administrator_required
@require_POST
def add_queue(request: Request) -> HttpResponse:
    """Add a queue."""
    return add(request, QueueForm(request.POST), tree.create_queue, "queue_form")


@administrator_required
@require_POST
def rename(request: Request, kind: str, pk: int) -> HttpResponse:
    """Give a cohort or queue another name."""
    owner = _owner(kind, pk)
    return act(request, NameForm(request.POST), lambda **values: tree.rename(owner=owner, **values))


@administrator_required
@require_POST
def remove(request: Request, kind: str, pk: int) -> HttpResponse:
    """Delete a cohort or queue."""
    owner = _owner(kind, pk)
    return act(request, VersionForm(request.POST), lambda **values: tree.remove(owner=owner, **values))


@administrator_required
@require_POST
def pause(request: Request, pk: int) -> HttpResponse:
    """Stop starting jobs of a queue, or go on."""
    queue, is_paused = get_object_or_404(Queue, pk=pk), request.POST.get("paused") == "1"
    return act(
        request,
        VersionForm(request.POST),
        lambda **values: tree.set_paused(queue=queue, is_paused=is_paused, **values),
    )


@administrator_required
@require_POST
def make_default(request: Request, pk: int) -> HttpResponse:
    """Make a queue its team's default."""
    queue = get_object_or_404(Queue, pk=pk)
    return act(request, VersionForm(request.POST), lambda **values: tree.make_default(queue=queue, **values))


def show(request: Request, *, status: int = 200, cell: OpenCell | None = None, **forms: Any) -> HttpResponse:
    """Draw the console; `forms` replaces the empty forms by those that were refused."""
    flavors = flavor_choices()
    context = {
        "tables": tree_tables(Organization.objects.order_by("name"), flavors),
        "flavors": flavors,
        "open": cell,
        "ladder": ladder_with_teams(),
        "cohort_form": CohortForm(auto_id="cohort_%s"),
        "queue_form": QueueForm(auto_id="queue_%s"),
        "priority_form": PriorityForm(auto_id="priority_%s"),
        **forms,
    }
    if request.htmx:  # htmx swaps nothing into the page when the answer is an error
        return render(request, "quotas/policy_tree.html", context)
    return render(request, "quotas/console.html", context, status=status)


def add(request: Request, form: Any, service: Callable[..., Model], name: str) -> HttpResponse:
    """Make a row from a form and go back to the console, or show the form again with what is wrong."""
    if not form.is_valid():
        return show(request, status=422, **{name: form})
    try:
        made = service(actor=actor_of(request), **form.cleaned_data)
    except DomainError as refusal:
        add_refusal(form, refusal)
        return show(request, status=refusal.status, **{name: form})
    messages.success(request, _("%(name)s was added.") % {"name": made})
    return redirect("quotas:console")


def act(request: Request, form: VersionForm, service: Callable[..., None]) -> HttpResponse:
    """Do what a button of a row says and go back to the console, with a sentence about it."""
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return redirect("quotas:console")
    values = dict(form.cleaned_data)
    try:
        service(actor=actor_of(request), expected_version=values.pop("version"), **values)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("Saved."))
    return redirect("quotas:console")


def _owner(kind: str, pk: int) -> Cohort | Queue:
    if kind == "cohort":
        return get_object_or_404(Cohort, pk=pk)
    if kind == "queue":
        return get_object_or_404(Queue, pk=pk)
    raise Http404


def _stored(owner: Cohort | Queue, flavor: ResourceFlavor) -> dict[str, object]:
    row = owner.quotas.filter(flavor=flavor).first()
    return {"version": 0, "nominal": ""} if row is None else {"version": row.version, "nominal": row.nominal}


def _save(request: Request, owner: Cohort | Queue, flavor: ResourceFlavor, values: dict[str, Any]) -> tree.QuotaEdit:
    common = {"actor": actor_of(request), "owner": owner, "flavor": flavor, "expected_version": values["version"]}
    if "remove" in request.POST:
        return tree.remove_quota(**common)
    return tree.set_quota(**common, nominal=values["nominal"])
