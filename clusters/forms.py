"""Forms of the supply: shape only, the rules are in the services."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from clusters.services.registration import MAX_LEVELS, Level
from portal.core.forms import DressedForm

# Longer than any right answer: what is wrong with it, the service says in words.
MAX_TYPED = 400
# More rows than the service takes are not read at all.
MAX_ROWS = 4 * MAX_LEVELS
_NUMBER = forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"})


class WriteOnlyTextarea(forms.Textarea):
    """A text area that never shows what was sent: secrets do not come back, not even after an error."""

    def format_value(self, _value: Any) -> str:
        """Return nothing, whatever was sent."""
        return ""


class KubeconfigField(forms.CharField):
    """The text of a kubeconfig, as pasted."""

    def __init__(self, **options: Any) -> None:
        attrs = {"rows": 10, "class": "m-mono", "spellcheck": "false", "autocomplete": "off"}
        super().__init__(strip=False, widget=WriteOnlyTextarea(attrs=attrs), **options)


class ClusterForm(DressedForm):
    """A new cluster; its levels are read beside it."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)
    kubeconfig = KubeconfigField(
        label=_("Kubeconfig"),
        help_text=_(
            "Only server, certificate authority and token are kept, the token encrypted. It is never shown again: "
            "after an error, paste it again."
        ),
    )
    exporter_url = forms.CharField(
        label=_("Address of the GPU exporters"),
        max_length=MAX_TYPED,
        required=False,
        help_text=_("For example http://{address}:9400/metrics. {node} and {address} are filled in for each node."),
    )


class ClusterEditForm(DressedForm):
    """What may change of a cluster, and the version that the person saw."""

    version = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)
    kubeconfig = KubeconfigField(
        label=_("New kubeconfig"), required=False, help_text=_("Leave it empty to keep address and token.")
    )
    exporter_url = forms.CharField(
        label=_("Address of the GPU exporters"),
        max_length=MAX_TYPED,
        required=False,
        help_text=_("{node} and {address} are filled in for each node. Empty: no measurements from this cluster."),
    )
    is_enabled = forms.BooleanField(
        label=_("Takes part"), required=False, help_text=_("One that does not is not watched, and gets no work.")
    )


class LevelsForm(DressedForm):
    """The version that the person saw; the levels stand beside it as rows."""

    version = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)


class FlavorForm(DressedForm):
    """A class of interchangeable nodes."""

    name = forms.CharField(label=_("Name"), max_length=MAX_TYPED)
    title = forms.CharField(label=_("Title"), max_length=MAX_TYPED)
    resource_name = forms.CharField(
        label=_("Resource that the nodes offer"), max_length=MAX_TYPED, initial="nvidia.com/gpu"
    )
    label_key = forms.CharField(
        label=_("Label by which its nodes are known"), max_length=MAX_TYPED, initial="nvidia.com/gpu.product"
    )
    label_value = forms.CharField(label=_("Its value"), max_length=MAX_TYPED)
    memory_mib = forms.IntegerField(
        label=_("Memory of one GPU, MiB"), min_value=0, max_value=2**31 - 1, initial=0, widget=_NUMBER
    )
    link = forms.CharField(label=_("Link between the GPUs of a node"), max_length=MAX_TYPED, required=False)
    rank = forms.IntegerField(
        label=_("Order"),
        min_value=0,
        max_value=32_767,
        initial=100,
        help_text=_("A run that names no GPU type tries the lowest number first."),
        widget=_NUMBER,
    )
    price_cents = forms.IntegerField(
        label=_("Price of one GPU-hour, in cents"),
        min_value=0,
        max_value=2**31 - 1,
        initial=0,
        required=False,
        help_text=_("What incidents cost is counted in it. 0: it has no price."),
        widget=_NUMBER,
    )

    def clean_price_cents(self) -> int:
        """Take an empty field for no price."""
        return int(self.cleaned_data["price_cents"] or 0)


def levels_of(data: QueryDict) -> list[Level]:
    """Return the levels of the rows that were sent, in their order; empty rows are no levels."""
    names, keys = data.getlist("level_name")[:MAX_ROWS], data.getlist("level_key")[:MAX_ROWS]
    rows = [Level(name.strip(), key.strip()) for name, key in zip(names, keys, strict=False)]
    return [row for row in rows if row.name or row.label_key]


class QuarantineForm(DressedForm):
    """Why nothing new may run on a node."""

    reason = forms.CharField(
        label=_("Why"), max_length=300, error_messages={"required": _("Say why, for those who come after you.")}
    )


# Until a node is emptied, unless somebody says otherwise: a dialog tells what is lost by then.
USUAL_MINUTES = 60


class MaintenanceForm(DressedForm):
    """When a node is emptied for its maintenance, and why."""

    minutes = forms.IntegerField(
        label=_("Minutes until its runs are stopped"),
        min_value=0,
        max_value=30 * 24 * 60,
        initial=USUAL_MINUTES,
        help_text=_("0: at once. Until then they run on, and nothing new comes."),
        error_messages={"required": _("Write in how many minutes.")},
        widget=_NUMBER,
    )
    reason = forms.CharField(label=_("Why"), max_length=300, required=False)
