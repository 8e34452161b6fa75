"""What every form of ours shares: the look of its controls, and how a rule's refusal reaches its fields."""

from django import forms

from portal.core.errors import DomainError, InvalidInputError

_CLASSES: dict[type[forms.Widget], str] = {
    forms.Select: "form-select",
    forms.CheckboxInput: "form-check-input",
    forms.RadioSelect: "form-check-input",
    forms.HiddenInput: "",
}


class DressedForm(forms.Form):
    """A form whose controls carry the classes of the stylesheet; components/field.html draws one of its fields."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came
        dress(self)


def dress(form: forms.BaseForm) -> None:
    """Give each control its class; Django's own forms, which cannot be derived from ours, are dressed by this."""
    for field in form.fields.values():
        known = (name for kind, name in _CLASSES.items() if isinstance(field.widget, kind))
        name = next(known, "form-control")
        field.widget.attrs["class"] = " ".join(filter(None, (str(field.widget.attrs.get("class", "")), name)))


def add_refusal(form: forms.BaseForm, refusal: DomainError) -> None:
    """Put what a service refused beside the fields it names; what names no field of this form goes on top."""
    problems = refusal.problems if isinstance(refusal, InvalidInputError) else {refusal.field or "": [refusal.message]}
    for field, messages in problems.items():
        for message in messages:
            form.add_error(field if field in form.fields else None, message)
