"""Where the sentences about a document stand in its form: path of the document -> input."""

import re
from collections.abc import Mapping

from django.utils.translation import gettext as _

from jobs.forms.layout import LISTINGS, SCALARS
from jobs.forms.spec import SpecForm
from portal.core.errors import DomainError, InvalidInputError

_BY_PATH = {".".join(scalar.path): scalar.name for scalar in SCALARS}
_LISTS = {listing.name for listing in LISTINGS}
_ENTRY = re.compile(r"(\w+)\[(\d+)\](?:\.(\w+))?")


def problems_of(refusal: DomainError) -> Mapping[str, list[str]]:
    """Return the sentences of a refusal by the path of the document."""
    return refusal.problems if isinstance(refusal, InvalidInputError) else {refusal.field or "": [refusal.message]}


def add_problems(form: SpecForm, problems: Mapping[str, list[str]]) -> None:
    """Put each sentence beside its input; what has no input here goes on top, with its path."""
    for path, sentences in problems.items():
        field, where = place_of(path)
        known = field if field in form.fields else None
        prefix = where if known else path
        for sentence in sentences:
            form.add_error(known, f"{prefix}: {sentence}" if prefix else sentence)


def place_of(path: str) -> tuple[str | None, str]:
    """Return the input for a path, and which part of it is meant ("row 2, claim") where it is a list."""
    if path in _BY_PATH or path in _LISTS or path == "team":
        return _BY_PATH.get(path, path), ""
    if match := _ENTRY.fullmatch(path):
        row = _("row %(number)d") % {"number": int(match[2]) + 1}
        return match[1], f"{row}, {match[3]}" if match[3] else row
    head, _dot, rest = path.partition(".")
    if head in _LISTS:
        return head, rest
    return next((scalar.name for scalar in SCALARS if scalar.path[0] == head), None), ""
