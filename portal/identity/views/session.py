"""Signing in and out, and the chosen team."""

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.http import Request
from portal.identity.forms import SignInForm
from portal.identity.middleware import CHOSEN_TEAM
from portal.identity.services import accounts


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for name and password; give a fresh session."""
    if request.user.is_authenticated:
        return redirect(next_page(request))
    form = SignInForm(request.POST or None)
    if form.is_valid():
        user = accounts.check_password(**form.cleaned_data, address=address_of(request))
        if user is not None:
            login(request, user)
            accounts.record_sign_in(user=user)
            return redirect(next_page(request))
        form.add_error(None, _("This name and password do not fit, or there were too many tries."))
    status = 422 if form.is_bound else 200
    return render(request, "identity/sign_in.html", {"form": form, "next": next_page(request)}, status=status)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    if request.user.is_authenticated:
        accounts.record_sign_out(user=request.user)
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


@login_required
@require_POST
def switch_team(request: Request) -> HttpResponseRedirect:
    """Choose the team that pages start with, among the person's own."""
    wanted = request.POST.get("team")
    team = next((team for team in request.teams if str(team.pk) == wanted), None)
    if team is None:
        raise Http404
    request.session[CHOSEN_TEAM] = team.pk
    return HttpResponseRedirect(next_page(request))


def next_page(request: HttpRequest) -> str:
    """Return the wanted address if it is one of ours, else the home page."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    # Without a slash it would be taken for the name of a view.
    return wanted if ours and "/" in wanted else resolve_url(settings.LOGIN_REDIRECT_URL)


def address_of(request: HttpRequest) -> str:
    """Return where the request came from: behind our proxy, the entry that the proxy itself wrote, the last one."""
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.SECURE_PROXY_SSL_HEADER else ""
    return forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR", "")
