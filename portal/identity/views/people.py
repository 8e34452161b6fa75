"""Accounts of the platform, for its administrators."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from portal.core.http import Request
from portal.core.keyset import keyset_page
from portal.identity.actors import actor_of
from portal.identity.forms import SwitchForm
from portal.identity.models import User
from portal.identity.permissions import administrator_required
from portal.identity.selectors import people as people_matching
from portal.identity.services import people as service
from portal.identity.views.acts import act
from portal.identity.views.pager import pager_of

PAGE_SIZE = 50


@administrator_required
@require_GET
def people(request: Request) -> HttpResponse:
    """List the people of the platform, by name."""
    query = request.GET.get("q", "").replace("\x00", "")[:150]
    page = keyset_page(
        people_matching(query), cursor=request.GET.get("cursor"), size=PAGE_SIZE, order=("username", "id")
    )
    return render(request, "identity/people.html", {"page": page, "query": query, "pager": pager_of(request, page)})


@administrator_required
@require_POST
def set_active(request: Request, user_id: int) -> HttpResponse:
    """Open or close an account."""
    person, active = get_object_or_404(User, pk=user_id), _is_on(request)
    return act(
        request,
        lambda: service.set_active(actor=actor_of(request), person=person, active=active),
        done=_("The account is open.") if active else _("The account is closed."),
        back="identity:people",
    )


@administrator_required
@require_POST
def set_administrator(request: Request, user_id: int) -> HttpResponse:
    """Make a person an administrator, or no longer one."""
    person, administrator = get_object_or_404(User, pk=user_id), _is_on(request)
    return act(
        request,
        lambda: service.set_administrator(actor=actor_of(request), person=person, administrator=administrator),
        done=_("This person is an administrator.") if administrator else _("This person is no administrator any more."),
        back="identity:people",
    )


def _is_on(request: Request) -> bool:
    form = SwitchForm(request.POST)
    return form.is_valid() and form.cleaned_data["on"]
