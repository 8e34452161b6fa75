"""The button that asks for the checks of a cluster anew."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from clusters.models import Cluster
from clusters.services.findings import ask_for_checks
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.permissions import administrator_required


@administrator_required
@require_POST
def ask(request: Request, name: str) -> HttpResponse:
    """Ask for all checks of a cluster."""
    cluster = get_object_or_404(Cluster, name=name)
    try:
        ask_for_checks(actor=actor_of(request), cluster=cluster)
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, _("The checks are made now; what they find appears here."))
    return redirect("clusters:detail", name=name)
