"""Forms of the policy console: shape only, the rules are in the services."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.core.forms import DressedForm
from portal.identity.models import Organization, Team
from quotas.models import Cohort, Guard
from quotas.policy.limits import MAX_GPUS, MAX_PRIORITY

# Longer than any right answer, short enough to be echoed.
MAX_TYPED = 60


class VersionForm(DressedForm):
    """Carries the version that the person saw; 0 where there was nothing."""

    version = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)


class QuotaForm(VersionForm):
    """The nominal amount of one cell, as typed: the service says what is wrong with it."""

    nominal = forms.CharField(
        label=_("Whole GPUs"),
        max_length=MAX_TYPED,
        strip=True,
        error_messages={"required": _("Write whole GPUs, from 0 to %(limit)d.") % {"limit": MAX_GPUS}},
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "size": 7}),
    )


class NameForm(VersionForm):
    """Another name."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)


class CohortForm(DressedForm):
    """A new cohort: below another, or as the root of an organization."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)
    organization = forms.ModelChoiceField(
        Organization.objects.order_by("name"), label=_("Organization"), empty_label=None, to_field_name="slug"
    )
    parent = forms.ModelChoiceField(
        Cohort.objects.order_by("name"), label=_("Below"), required=False, empty_label=_("Nothing: it is a root")
    )


class QueueForm(DressedForm):
    """A new queue of a team."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)
    team = forms.ModelChoiceField(
        Team.objects.order_by("name"), label=_("Team"), empty_label=None, to_field_name="slug"
    )
    cohort = forms.ModelChoiceField(Cohort.objects.order_by("name"), label=_("Below"), empty_label=None)


class PriorityForm(DressedForm):
    """A rung of the ladder; `version` is absent for a new one."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)
    value = forms.IntegerField(
        label=_("Value"),
        min_value=-MAX_PRIORITY,
        max_value=MAX_PRIORITY,
        help_text=_("Higher goes first."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    description = forms.CharField(label=_("What it is for"), max_length=200, required=False)
    is_open = forms.BooleanField(label=_("Every team may use it"), required=False)
    is_default = forms.BooleanField(label=_("Used when a job names none"), required=False)
    version = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False, widget=forms.HiddenInput)


class GrantForm(VersionForm):
    """The teams that may use a rung that is not open to all."""

    teams = forms.ModelMultipleChoiceField(
        Team.objects.order_by("name"),
        label=_("Teams that may use it"),
        required=False,
        to_field_name="slug",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["teams"].widget.attrs["class"] = "form-check-input"


class KeepForm(VersionForm):
    """Whether the portal keeps the spaces of a cluster by itself."""

    is_kept = forms.BooleanField(label=_("Keep them in step"), required=False)


class GuardForm(VersionForm):
    """What the policies of a cluster shall do about by-passes."""

    guard = forms.ChoiceField(label=_("Policies against by-passes"), choices=Guard.choices)
