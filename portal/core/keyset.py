"""Pages by key instead of by offset: no row is lost or seen twice while others come and go, and no COUNT is run.

A cursor holds the order's values of the last (or first) row of a page. It is not signed, since it gives no right
that the queryset does not give; a damaged one is an error of the caller.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import BadRequest, ValidationError
from django.db.models import Field, Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError

Row = TypeVar("Row", bound=Model)
NEWEST_FIRST = ("-created_at", "-id")
WAYS = {"next": False, "previous": True}  # whether the rows are read backwards
MAX_CURSOR = 1_000  # characters
FIRST_YEAR = 1970  # no row is older


class DamagedCursorError(DomainError, BadRequest):
    """The cursor is not one that we gave. As a BadRequest it makes an HTML page answer 400 too."""

    code = "damaged_cursor"
    status = 400
    default_message = _("This cursor is damaged; start again without one.")

    def __init__(self) -> None:
        super().__init__(field="cursor")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in the wanted order, and the cursors of the pages around them (None: there is no such page)."""

    rows: list[Row]
    next: str | None
    previous: str | None


def keyset_page(
    queryset: QuerySet[Row], *, cursor: str | None, size: int, order: Sequence[str] = NEWEST_FIRST
) -> Page[Row]:
    """Return one page. `order` names columns of the row that are never null; the last one must be unique.

    Raise DamagedCursorError for a cursor that is not one of this order.
    """
    backwards, values = _decode(cursor, queryset.model, order) if cursor else (False, None)
    direction = [_flip(name) for name in order] if backwards else list(order)
    beyond = queryset.filter(_after(direction, values)) if values else queryset
    found = list(beyond.order_by(*direction)[: size + 1])
    rows, more = found[:size], len(found) > size
    if backwards:
        rows.reverse()
    has_next, has_previous = (True, more) if backwards else (more, values is not None)
    return Page(
        rows=rows,
        next=_encode("next", rows[-1], order) if rows and has_next else None,
        previous=_encode("previous", rows[0], order) if rows and has_previous else None,
    )


def _after(direction: Sequence[str], values: Sequence[object]) -> Q:
    """Return the condition for rows beyond `values`. Its first term lets the database use the order's index."""
    beyond = Q()
    for name, value in reversed(list(zip(direction, values, strict=True))):
        column, sign = name.removeprefix("-"), "lt" if name.startswith("-") else "gt"
        strictly = Q((f"{column}__{sign}", value))
        beyond = Q((f"{column}__{sign}e", value)) & (strictly | beyond) if beyond else strictly
    return beyond


def _flip(name: str) -> str:
    return name.removeprefix("-") if name.startswith("-") else f"-{name}"


def _encode(way: str, row: Model, order: Sequence[str]) -> str:
    values = [getattr(row, name.removeprefix("-")) for name in order]
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps([way, *plain]).encode()).decode().rstrip("=")


def _decode(cursor: str, model: type[Model], order: Sequence[str]) -> tuple[bool, list[object]]:
    try:
        padded = cursor[:MAX_CURSOR].encode("ascii") + b"=" * (-len(cursor) % 4)
        way, *plain = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        values = [_checked(model, name, value) for name, value in zip(order, plain, strict=True)]
        return WAYS[way], values
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, binascii.Error, ValidationError) as error:
        raise DamagedCursorError from error


def _checked(model: type[Model], name: str, value: object) -> object:
    """Return the value as its column has it. Raise ValueError or ValidationError if it could not stand there."""
    if not isinstance(value, str | int) or isinstance(value, bool) or "\x00" in str(value):
        raise ValueError(name)
    str(value).encode()  # half a surrogate pair is a ValueError here, and an error of the database later
    column: Field[Any, Any] = model._meta.get_field(name.removeprefix("-"))  # type: ignore[assignment]  # noqa: SLF001
    clean = column.clean(value, None)
    if clean is None:
        raise ValueError(name)
    return _moment(clean) if isinstance(clean, datetime) else clean


def _moment(value: datetime) -> datetime:
    """Return the moment in UTC: Postgres takes neither every year nor every distance from UTC that Python takes."""
    if timezone.is_naive(value) or (moment := value.astimezone(UTC)).year < FIRST_YEAR:
        raise ValueError(value)
    return moment
