"""Who did what."""

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.core.http import Request
from portal.core.keyset import keyset_page
from portal.identity.forms import AuditForm
from portal.identity.permissions import can_read_audit
from portal.identity.selectors import AuditFilter, audit_log, audited_teams
from portal.identity.views.pager import pager_of

PAGE_SIZE = 50
NEWEST_FIRST = ("-at", "-id")


@login_required
@require_GET
def audit(request: Request) -> HttpResponse:
    """Show the log: an owner's own teams, everything to an administrator."""
    if not can_read_audit(request.user):
        raise PermissionDenied
    form = AuditForm(request.GET)
    wanted = AuditFilter(**form.cleaned_data) if form.is_valid() else AuditFilter()
    page = keyset_page(
        audit_log(request.user, wanted), cursor=request.GET.get("cursor"), size=PAGE_SIZE, order=NEWEST_FIRST
    )
    context = {
        "form": form,
        "page": page,
        "pager": pager_of(request, page),
        "teams": audited_teams(request.user),
        "is_filtered": wanted != AuditFilter(),
    }
    return render(request, "identity/audit.html", context, status=200 if form.is_valid() else 422)
