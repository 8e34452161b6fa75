"""A form field that is a list: rows of inputs that grow and shrink in the page, posted as name-index-column."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext as _

Row = dict[str, str]
# What the page's script replaces by a number when a row is added.
BLANK_INDEX = "__index__"


@dataclass(frozen=True, slots=True)
class Column:
    """One input of a row. `kind` is text, area (keeps line breaks), check or select."""

    name: str
    label: str | Promise
    kind: str = "text"
    placeholder: str = ""
    # Of a select: (value, label) pairs; of a text: what is offered while typing.
    options: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One input as it is drawn."""

    column: Column
    id: str
    name: str
    value: str
    label: str
    options: Sequence[tuple[str, str]] = ()


class RowsWidget(forms.Widget):
    """Reads the rows back, in the order in which they stand in the page."""

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__()
        self.columns = columns

    def value_from_datadict(self, data: Any, files: object, name: str) -> list[Row]:  # noqa: ARG002 -- Django's signature
        """Return one mapping a row, all columns present."""
        key = re.compile(rf"{re.escape(name)}-(\d{{1,9}})-(\w+)")
        rows: dict[str, Row] = {}
        for posted in data:
            match = key.fullmatch(posted)
            if match and (column := match[2]) in {known.name for known in self.columns}:
                rows.setdefault(match[1], {})[column] = _text(data, posted)
        empty = {column.name: "" for column in self.columns}
        return [empty | row for row in rows.values()]

    def value_omitted_from_data(self, data: object, files: object, name: str) -> bool:  # noqa: ARG002
        """An emptied list is posted as nothing at all."""
        return False


class BoundRows(BoundField):
    """The rows as the template draws them."""

    @property
    def rows(self) -> Iterator[list[Cell]]:
        """The cells of each row."""
        return (self._cells(str(index), row) for index, row in enumerate(self.value() or []))

    @property
    def blank(self) -> list[Cell]:
        """The cells of a row that the page may add."""
        return self._cells(BLANK_INDEX, {})

    @property
    def id_for_label(self) -> str:
        """Where a link of the list of errors leads: the whole group."""
        return str(self.auto_id)

    def _cells(self, index: str, row: Mapping[str, str]) -> list[Cell]:
        number = int(index) + 1 if index.isdecimal() else _("new")
        columns: Sequence[Column] = self.field.columns  # type: ignore[attr-defined]  # only RowsField binds this
        return [
            Cell(
                column=column,
                id=f"{self.auto_id}-{index}-{column.name}",
                name=f"{self.html_name}-{index}-{column.name}",
                value=(value := row.get(column.name, "")),
                label=_("%(list)s %(number)s: %(column)s")
                % {"list": self.label, "number": number, "column": column.label},
                options=_with(column.options, value) if column.kind == "select" else (),
            )
            for column in columns
        ]


class RowsField(forms.Field):
    """A list of rows. Its cleaned value has no rows at its end that are empty."""

    def __init__(self, columns: Sequence[Column], **options: Any) -> None:
        self.columns = columns
        super().__init__(required=False, widget=RowsWidget(columns), **options)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> BoundField:
        """Bind to rows."""
        return BoundRows(form, self, field_name)

    def clean(self, value: list[Row]) -> list[Row]:
        """Drop what was added and never filled."""
        rows = list(value or [])
        while rows and not any(text for name, text in rows[-1].items() if self._kind(name) != "check"):
            rows.pop()
        return rows

    def _kind(self, name: str) -> str:
        return next(column.kind for column in self.columns if column.name == name)


def _text(data: QueryDict | Mapping[str, str], name: str) -> str:
    # Browsers send each line break of a text area as two characters.
    return str(data.get(name, "")).replace("\r\n", "\n")


def _with(options: Sequence[tuple[str, str]], value: str) -> Sequence[tuple[str, str]]:
    """Offer what stands there already, even if it is unknown here: choosing another page must not change it."""
    return options if not value or value in dict(options) else [*options, (value, value)]
