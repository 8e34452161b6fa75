"""Forms of people, teams and tokens: shape only, the rules are in the services."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.utils.translation import gettext_lazy as _

from portal.identity.actors import as_actor
from portal.identity.services import accounts


class SignInForm(forms.Form):
    """Name and password."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=4096,  # hashing takes time with the length
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class ChangePasswordForm(PasswordChangeForm):
    """Old password and the new one twice."""


class ResetPasswordForm(SetPasswordForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """The new password twice, behind a link from a mail."""

    def save(self, commit: bool = True) -> Any:  # noqa: FBT001, FBT002, ARG002 -- Django's signature
        """Set the password through the service, so that the act is written down."""
        accounts.set_password(actor=as_actor(self.user), user=self.user, password=self.cleaned_data["new_password1"])
        return self.user
