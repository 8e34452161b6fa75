"""Many rows by one statement: they travel as one JSON document, which PostgreSQL takes apart.

A model instance and a placeholder for each value cost many times as much; that counts from some hundred rows on.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Model

_ROWS = 5_000  # of one statement: some megabytes


def upsert(
    model: type[Model],
    rows: Sequence[object],
    columns: Sequence[str],
    *,
    same: Mapping[str, object],
    unique: Sequence[str] = (),
) -> list[tuple[Any, ...]]:
    """Insert rows, or update those that their `unique` columns find; return the key and these columns of each.

    `columns` are read from the rows (mappings or Structs), `same` holds what all rows share. Any other column gets the
    model's default in a new row and stays as it is in an old one. Nothing but the database validates the values.
    """
    if not rows:
        return []
    shared = _shared(model, columns, same)
    table = _quoted(model._meta.db_table)  # noqa: SLF001 -- Django's documented way to a model's table
    statement = (
        f"INSERT INTO {table} ({_listed([*columns, *shared])})"  # noqa: S608 -- the names are our models' own
        f" SELECT {_listed(columns)}{', %s' * len(shared)} FROM json_populate_recordset(NULL::{table}, %s::json)"
        f"{_or_update([*columns, *same], unique)} RETURNING {_listed(['id', *unique])}"
    )
    found: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for start in range(0, len(rows), _ROWS):
            document = msgspec.json.encode(rows[start : start + _ROWS]).decode()
            cursor.execute(statement, [*shared.values(), document])
            found += cursor.fetchall()
    return found


def _shared(model: type[Model], columns: Sequence[str], same: Mapping[str, object]) -> dict[str, Any]:
    """Return what the database takes for each column that is not read from the rows."""
    blank = model()
    return {
        field.attname: field.get_db_prep_save(
            same[field.attname] if field.attname in same else field.pre_save(blank, add=True), connection
        )
        for field in model._meta.concrete_fields  # noqa: SLF001 -- as above
        if not field.primary_key and field.attname not in columns
    }


def _or_update(columns: Iterable[str], unique: Sequence[str]) -> str:
    if not unique:
        return ""
    changes = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in columns if name not in unique)
    return f" ON CONFLICT ({_listed(unique)}) DO UPDATE SET {changes}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
