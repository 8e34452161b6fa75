"""What a person sets for themselves."""

from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.forms import ProfileForm, ThemeForm
from portal.identity.services import accounts

# The frame's script reads it before the first paint; see static/js/theme.js.
THEME_COOKIE = "muster_theme"
YEAR = timedelta(days=365)


@login_required
@require_http_methods(["GET", "POST"])
def profile(request: Request) -> HttpResponse:
    """Show and change name, theme and time zone."""
    user = request.user
    initial = {name: getattr(user, name) for name in accounts.PROFILE_FIELDS}
    form = ProfileForm(request.POST or None, initial=initial)
    if form.is_valid():
        accounts.change_profile(actor=actor_of(request), user=user, changes=form.cleaned_data)
        messages.success(request, _("Your profile was saved."))
        return _with_theme(redirect("identity:profile"), form.cleaned_data["theme"])
    return render(request, "identity/profile.html", {"form": form}, status=422 if form.is_bound else 200)


@login_required
@require_POST
def theme(request: Request) -> HttpResponse:
    """Keep the choice of the theme switch with the account."""
    form = ThemeForm(request.POST)
    if not form.is_valid():
        return HttpResponse(status=422)
    accounts.change_profile(actor=actor_of(request), user=request.user, changes=form.cleaned_data)
    return _with_theme(HttpResponse(status=204), form.cleaned_data["theme"])


def _with_theme(response: HttpResponse, theme: str) -> HttpResponse:
    response.set_cookie(THEME_COOKIE, theme, max_age=YEAR, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
    return response
