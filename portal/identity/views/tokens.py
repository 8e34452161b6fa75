"""A person's API tokens."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.errors import DomainError
from portal.core.forms import add_refusal
from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.forms import TokenForm
from portal.identity.selectors import live_tokens, tokens_of
from portal.identity.services import tokens as service
from portal.identity.views.acts import act


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def tokens(request: Request) -> HttpResponse:
    """List the tokens; make one, and show its secret in this one answer."""
    form, secret, status = TokenForm(request.POST or None), "", 200
    if request.method == "POST":
        secret = _create(request, form)
        form, status = (TokenForm(), 201) if secret else (form, 422)
    context = {
        "form": form,
        "secret": secret,
        "tokens": tokens_of(request.user),
        "live": set(live_tokens(request.user)),
    }
    return render(request, "identity/tokens.html", context, status=status)


@login_required
@require_POST
def revoke(request: Request, token_key: str) -> HttpResponse:
    """Make a token useless."""
    token = get_object_or_404(tokens_of(request.user), token_key=token_key)
    return act(
        request,
        lambda: service.revoke_token(actor=actor_of(request), token=token),
        done=_("The token does not work any more."),
        back="identity:tokens",
    )


def _create(request: Request, form: TokenForm) -> str:
    if not form.is_valid():
        return ""
    try:
        return service.create_token(actor=actor_of(request), user=request.user, **form.cleaned_data)[1]
    except DomainError as refusal:
        add_refusal(form, refusal)
        return ""
