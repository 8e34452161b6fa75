"""Forms of people, teams and tokens: shape only, the rules are in the services."""

import zoneinfo
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.contrib.auth.password_validation import password_validators_help_text_html, validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from portal.core.forms import DressedForm, dress
from portal.identity.actors import as_actor
from portal.identity.models import Membership, Organization, User
from portal.identity.services import accounts, attempts, invitations
from portal.identity.services.tokens import MAX_DAYS, MAX_NAME

MAX_PASSWORD = 4096  # hashing takes time with the length
MAILS_PER_ADDRESS = 5  # per quarter of an hour
Role = Membership.Role


class SignInForm(DressedForm):
    """Name and password."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "autofocus": True}),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class ChangePasswordForm(PasswordChangeForm):
    """Old password and the new one twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)


class AskForResetForm(PasswordResetForm):
    """The address that gets a link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)

    def get_users(self, email: str) -> Iterable[Any]:
        """Return the accounts to mail; none after several mails, so that nobody's mailbox can be filled from here."""
        if not attempts.claim("password-reset", email, limit=MAILS_PER_ADDRESS):
            return []
        return super().get_users(email)


class ResetPasswordForm(SetPasswordForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """The new password twice, behind a link from a mail."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dress(self)

    def save(self, commit: bool = True) -> Any:  # noqa: FBT001, FBT002, ARG002 -- Django's signature
        """Set the password through the service, so that the act is written down."""
        accounts.set_password(actor=as_actor(self.user), user=self.user, password=self.cleaned_data["new_password1"])
        return self.user


class ProfileForm(DressedForm):
    """What a person may change of themselves."""

    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    theme = forms.ChoiceField(label=_("Theme"), choices=User.Theme)
    time_zone = forms.ChoiceField(
        label=_("Time zone"), choices=lambda: [(zone, zone) for zone in sorted(zoneinfo.available_timezones())]
    )


class ThemeForm(forms.Form):
    """The choice of the theme switch."""

    theme = forms.ChoiceField(choices=User.Theme)


class RegisterForm(DressedForm):
    """A name and a password for an invited address."""

    username = forms.CharField(
        label=_("User name"),
        max_length=invitations.LONGEST_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
        help_text=invitations.NAME_RULE,
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=password_validators_help_text_html,
    )

    def __init__(self, *args: Any, email: str, **kwargs: Any) -> None:
        self.email = email
        super().__init__(*args, **kwargs)

    def clean(self) -> dict[str, Any]:
        """Refuse a weak password, also one that is like the name or address."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if "password" in values:
            try:
                validate_password(values["password"], User(username=values.get("username", ""), email=self.email))
            except ValidationError as error:
                self.add_error("password", error)
        return values


class TokenForm(DressedForm):
    """Name and life of a new API token."""

    name = forms.CharField(label=_("Name"), max_length=MAX_NAME, help_text=_("What uses it, for example: ci, laptop."))
    days = forms.IntegerField(label=_("Days until it expires"), min_value=1, max_value=MAX_DAYS, initial=90)


class InvitationForm(DressedForm):
    """Whom to invite, in which role."""

    email = forms.EmailField(label=_("Email address"))
    role = forms.ChoiceField(label=_("Role"), choices=Role, initial=Role.MEMBER)


class RoleForm(DressedForm):
    """A member's role."""

    role = forms.ChoiceField(label=_("Role"), choices=Role)


class OrganizationForm(DressedForm):
    """A new organization."""

    name = forms.CharField(label=_("Name"), max_length=100)
    slug = forms.CharField(label=_("Short name"), max_length=40, help_text=_("Lower-case letters, digits, hyphens."))


class TeamForm(DressedForm):
    """A new team of an organization."""

    organization = forms.ModelChoiceField(label=_("Organization"), queryset=Organization.objects.order_by("name"))
    name = forms.CharField(label=_("Name"), max_length=100)
    slug = forms.CharField(
        label=_("Short name"), max_length=40, help_text=_("It becomes the team's namespace on every cluster.")
    )


class SwitchForm(forms.Form):
    """One switch of an account, on or off."""

    on = forms.BooleanField(required=False)


class AuditForm(DressedForm):
    """Filters of the log."""

    actor = forms.CharField(label=_("Person"), max_length=150, required=False)
    action = forms.CharField(label=_("Act begins with"), max_length=80, required=False)
    team = forms.CharField(label=_("Team"), max_length=40, required=False)
