"""Pages on which administrators define flavors."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from clusters.forms import FlavorForm
from clusters.models import ResourceFlavor
from clusters.selectors.capacity import free_by_flavor
from clusters.services.flavors import FIELDS, create_flavor, delete_flavor, update_flavor
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.permissions import administrator_required


@administrator_required
@require_http_methods(["GET", "POST"])
def flavors(request: Request) -> HttpResponse:
    """List the flavors with what there is of each; add one."""
    if request.method == "GET":
        return _show_all(request, FlavorForm())
    form = FlavorForm(request.POST)
    if not form.is_valid():
        return _show_all(request, form, status=422)
    try:
        made = create_flavor(actor=actor_of(request), values=form.cleaned_data)
    except DomainError as refusal:
        add_refusal(form, refusal)
        return _show_all(request, form, status=refusal.status)
    messages.success(request, _("%(name)s was added.") % {"name": made.name})
    return redirect("clusters:flavors")


@administrator_required
@require_http_methods(["GET", "POST"])
def edit(request: Request, pk: int) -> HttpResponse:
    """Change a flavor."""
    flavor = get_object_or_404(ResourceFlavor, pk=pk)
    if request.method == "GET":
        return _show(request, flavor, FlavorForm(initial={name: getattr(flavor, name) for name in FIELDS}))
    form = FlavorForm(request.POST)
    if not form.is_valid():
        return _show(request, flavor, form, status=422)
    try:
        update_flavor(actor=actor_of(request), flavor=flavor, values=form.cleaned_data)
    except DomainError as refusal:
        add_refusal(form, refusal)
        return _show(request, flavor, form, status=refusal.status)
    messages.success(request, _("Saved."))
    return redirect("clusters:flavors")


@administrator_required
@require_POST
def remove(request: Request, pk: int) -> HttpResponse:
    """Delete a flavor that nothing uses."""
    flavor = get_object_or_404(ResourceFlavor, pk=pk)
    try:
        delete_flavor(actor=actor_of(request), flavor=flavor)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("%(name)s was removed.") % {"name": flavor.name})
    return redirect("clusters:flavors")


def _show_all(request: Request, form: FlavorForm, *, status: int = 200) -> HttpResponse:
    capacities = {row.flavor_id: row for row in free_by_flavor(clock.now())}
    rows = [(flavor, capacities.get(flavor.pk)) for flavor in ResourceFlavor.objects.all()]
    return render(request, "clusters/flavors.html", {"rows": rows, "form": form}, status=status)


def _show(request: Request, flavor: ResourceFlavor, form: FlavorForm, *, status: int = 200) -> HttpResponse:
    return render(request, "clusters/flavor.html", {"flavor": flavor, "form": form}, status=status)
