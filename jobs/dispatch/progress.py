"""Writes of the driver, fenced: a worker whose claim was taken over changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Case, F, Value, When

from jobs.dispatch.view import View
from jobs.models import Attempt

# As `advance` does it for one: who moved it since the claim has news that this look did not see, and a clock that was
# set back stretches no limit.
_WRITE_LOOKS = """
UPDATE jobs_attempt AS attempt
SET due_at = CASE WHEN attempt.due_at = look.due_before THEN look.due_at ELSE attempt.due_at END,
    claimed_until = NULL, looked_at = look.at, updated_at = look.at,
    step_at = CASE WHEN attempt.step_at > look.at THEN look.at ELSE attempt.step_at END,
    started_at = CASE WHEN attempt.started_at > look.at THEN look.at ELSE attempt.started_at END
FROM unnest(%s::bigint[], %s::int[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[])
    AS look (id, fence, due_before, due_at, at)
WHERE attempt.id = look.id AND attempt.fence = look.fence AND attempt.step <> 'ended'
"""


class FencedOffError(Exception):
    """Another worker has claimed this attempt since; what this one found out no longer counts."""


@dataclass
class Looks:
    """Looks that changed nothing, kept to be written all at once."""

    waiting: list[tuple[View, datetime]] = field(default_factory=list)

    def write(self) -> None:
        """Write them. Where a claim was taken over nothing is written, and nothing is lost."""
        if not self.waiting:
            return
        views = [view for view, _due_at in self.waiting]
        columns: list[Any] = [
            [view.attempt.pk for view in views],
            [view.attempt.fence for view in views],
            [view.attempt.due_at for view in views],
            [due_at for _view, due_at in self.waiting],
            [view.now for view in views],
        ]
        self.waiting = []
        with connection.cursor() as cursor:
            cursor.execute(_WRITE_LOOKS, columns)


_looks: ContextVar[Looks | None] = ContextVar("looks", default=None)


@contextmanager
def gathered_looks() -> Iterator[Looks]:
    """Let `advance` gather what it need not write at once; what is left is written at the end."""
    looks = Looks()
    token = _looks.set(looks)
    try:
        yield looks
    finally:
        _looks.reset(token)
        looks.write()


def advance(view: View, *, due_s: float, step: Attempt.Step | None = None, **columns: object) -> None:
    """Write where the attempt stands and when to look again, and give the claim back.

    Raise FencedOffError when the claim is not ours any more; inside a transaction that undoes what went with it.
    """
    looks, due_at = _looks.get(), view.now + timedelta(seconds=due_s)
    if looks and step is None and not columns and not connection.in_atomic_block:
        looks.waiting.append((view, due_at))
        return
    values: dict[str, object] = {
        # Who moved it since the claim (a cancel, more replicas) has news that this look did not see.
        "due_at": Case(When(due_at=view.attempt.due_at, then=Value(due_at)), default=F("due_at")),
        "looked_at": view.now,
        "updated_at": view.now,
        "claimed_until": None,
        # Since when it waits, or runs, is never after now: a clock that was set back would stretch every limit.
        "step_at": _not_after("step_at", view.now),
        "started_at": _not_after("started_at", view.now),
        **columns,
    }
    if step is not None:
        values |= {"step": step, "step_at": view.now}
    rows = Attempt.objects.filter(pk=view.attempt.pk, fence=view.attempt.fence).exclude(step=Attempt.Step.ENDED)
    if not rows.update(**values):
        raise FencedOffError(view.attempt.object_name)


def _not_after(column: str, now: datetime) -> Case:
    return Case(When(**{f"{column}__gt": now}, then=Value(now)), default=F(column))
