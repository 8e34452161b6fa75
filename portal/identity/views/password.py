"""Changing the password, and getting a new one by mail."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash, views
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from portal.core.http import Request
from portal.identity.actors import actor_of
from portal.identity.forms import AskForResetForm, ChangePasswordForm, ResetPasswordForm
from portal.identity.services import accounts


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def change(request: Request) -> HttpResponse:
    """Set a new password after asking for the old one; this session stays, all others end."""
    form = ChangePasswordForm(request.user, request.POST or None)
    if form.is_valid():
        accounts.set_password(actor=actor_of(request), user=request.user, password=form.cleaned_data["new_password1"])
        update_session_auth_hash(request, request.user)
        messages.success(request, _("The password was changed. Other sessions have ended; API tokens stay valid."))
        return redirect("identity:profile")
    return render(request, "identity/password.html", {"form": form}, status=422 if form.is_bound else 200)


# Django's own pages: their token fits once, expires, and the answer is the same for an unknown address.
# They would take a PUT for a POST.
_page = require_http_methods(["GET", "POST"])
reset = _page(
    views.PasswordResetView.as_view(
        form_class=AskForResetForm,
        template_name="identity/password_reset.html",
        subject_template_name="emails/password_reset_subject.txt",
        email_template_name="emails/password_reset.txt",
        success_url=reverse_lazy("identity:password_reset_sent"),
    )
)
reset_sent = views.PasswordResetDoneView.as_view(template_name="identity/password_reset_sent.html")
reset_confirm = _page(
    views.PasswordResetConfirmView.as_view(
        template_name="identity/password_reset_confirm.html",
        form_class=ResetPasswordForm,
        success_url=reverse_lazy("identity:sign_in"),
    )
)
