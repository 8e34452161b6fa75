"""A label as it is typed: "key=value"."""

from django import forms
from django.utils.translation import gettext as _

from jobs.explain.problems import sentence
from jobs.jobspec import syntax
from jobs.jobspec.problem import Problem, shown


class LabelForm(forms.Form):
    """One label; an empty value takes it away."""

    label = forms.CharField(max_length=400, strip=True)

    def clean_label(self) -> dict[str, str]:
        """Return the label as a map of one entry."""
        key, sign, value = self.cleaned_data["label"].partition("=")
        if not sign:
            raise forms.ValidationError(_("Write a label as key=value; key= takes it away."))
        for rule, text in ((syntax.LABEL_KEY, key), (syntax.LABEL_VALUE, value)):
            if rule.holds is not None and not rule.holds(text):
                raise _refusal(rule.code, value=shown(text), max=rule.longest)
        if syntax.is_reserved_label(key):
            raise _refusal("reserved", value=shown(key))
        return {key: value}


def _refusal(code: str, **numbers: int | str) -> forms.ValidationError:
    return forms.ValidationError(sentence(Problem(field="label", code=code, numbers=numbers)))
