"""What every edit of the policy goes through: one at a time, on the version that was seen, told to the others."""

import re
from collections.abc import Mapping

from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from portal.core import clock
from portal.core.enqueue import enqueue
from portal.core.errors import InvalidInputError, StaleEditError
from portal.core.models import Lease
from portal.core.publish import publish
from quotas.models import Cohort, PriorityClass, Queue, Quota

_LOCK = "quotas.policy"
# Letters and digits of any script; no control character reaches the database.
_NAME = re.compile(r"\w[\w .-]{0,59}")


def one_at_a_time() -> None:
    """Wait for the other edits of the policy; lasts until the transaction ends.

    Two edits that are right each on their own can be wrong together (two children, one parent), so what is
    checked must be read after this.
    """
    Lease.objects.get_or_create(name=_LOCK)
    Lease.objects.select_for_update(no_key=True).get(name=_LOCK)


def change(row: Cohort | Queue | Quota | PriorityClass, expected_version: int, values: Mapping[str, object]) -> None:
    """Write some fields of a row that nobody changed since it was seen. Raise StaleEditError with both versions."""
    rows = type(row).objects.filter(pk=row.pk)
    moved = rows.filter(version=expected_version).update(version=F("version") + 1, updated_at=clock.now(), **values)
    if moved:
        row.refresh_from_db()
        return
    stored = rows.values("version", *values).first()
    if stored is None:
        raise StaleEditError(_("Somebody else deleted this meanwhile."))
    message = _("Somebody else changed %(name)s meanwhile: you saw version %(mine)d, it is at version %(stored)d.")
    numbers = {"name": str(row), "mine": expected_version, "stored": stored.pop("version")}
    raise StaleEditError(
        message % numbers, numbers={**numbers, **{f"stored_{key}": str(v) for key, v in stored.items()}}
    )


def announce() -> None:
    """Have the next cycle see the edit soon, and open pages at once."""
    enqueue("jobs.tasks.run_cycle")
    publish("queues")


def clean_name(name: str, others: QuerySet[Cohort] | QuerySet[Queue]) -> str:
    """Return the name as it is stored, new among the others of its kind. Raise InvalidInputError."""
    name = name.strip()
    if not _NAME.fullmatch(name):
        text = _("Use 1 to 60 letters, digits, blanks, dots, hyphens and underscores, starting with a letter or digit.")
        raise InvalidInputError({"name": [text]})
    if others.filter(name=name).exists():
        raise InvalidInputError({"name": [_("This name is taken.")]}, code="name_taken")
    return name
