"""The other end of an invitation's link."""

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from portal.core.errors import DomainError
from portal.core.forms import add_refusal
from portal.identity.forms import RegisterForm
from portal.identity.middleware import CHOSEN_TEAM
from portal.identity.models import Invitation, User
from portal.identity.services import accounts, invitations

DIGEST = "invitation"  # the session's key


@never_cache
@require_GET
def arrive(request: HttpRequest, secret: str) -> HttpResponse:
    """Keep the digest of the link in the session, so that the secret leaves the address bar, referrers and logs."""
    request.session[DIGEST] = invitations.digest_of(secret)
    return redirect("identity:answer_invitation")


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def answer(request: HttpRequest) -> HttpResponse:
    """Join the team: with a click when signed in, else by making an account for the invited address."""
    digest = request.session.get(DIGEST, "")
    invitation = invitations.open_invitations().select_related("team").filter(digest=digest).first()
    if invitation is None:
        return render(request, "identity/invitation_closed.html", status=404)
    if isinstance(request.user, User):
        return _join(request, invitation, request.user)
    return _register(request, invitation)


def _join(request: HttpRequest, invitation: Invitation, user: User) -> HttpResponse:
    refusal, status = "", 200
    if request.method == "POST":
        try:
            team = invitations.accept(user=user, digest=invitation.digest)
        except DomainError as error:
            refusal, status = error.message, error.status
        else:
            request.session.pop(DIGEST, None)
            request.session[CHOSEN_TEAM] = team.pk
            return redirect("identity:team", team.slug)
    context = {
        "invitation": invitation,
        "refusal": refusal,
        "fits": invitation.email.casefold() == user.email.casefold(),
    }
    return render(request, "identity/invitation.html", context, status=status)


def _register(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    form = RegisterForm(request.POST or None, email=invitation.email)
    if form.is_valid():
        try:
            user = invitations.register(digest=invitation.digest, **form.cleaned_data)
        except DomainError as refusal:
            add_refusal(form, refusal)
        else:
            login(request, user)
            accounts.record_sign_in(user=user)
            request.session.pop(DIGEST, None)
            return redirect("identity:team", invitation.team.slug)
    status = 422 if form.is_bound else 200
    return render(request, "identity/register.html", {"form": form, "invitation": invitation}, status=status)
