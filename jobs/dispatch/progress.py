"""Writes of the driver, fenced: a worker whose claim was taken over changes nothing."""

from datetime import timedelta

from django.db.models import Case, F, Value, When

from jobs.dispatch.view import View
from jobs.models import Attempt


class FencedOffError(Exception):
    """Another worker has claimed this attempt since; what this one found out no longer counts."""


def advance(view: View, *, due_s: float, step: Attempt.Step | None = None, **columns: object) -> None:
    """Write where the attempt stands and when to look again, and give the claim back.

    Raise FencedOffError when the claim is not ours any more; inside a transaction that undoes what went with it.
    """
    due_at = Value(view.now + timedelta(seconds=due_s))
    values: dict[str, object] = {
        # Who moved it since the claim (a cancel, more replicas) has news that this look did not see.
        "due_at": Case(When(due_at=view.attempt.due_at, then=due_at), default=F("due_at")),
        "claimed_until": None,
        "looked_at": view.now,
        "updated_at": view.now,
        **columns,
    }
    if step is not None:
        values |= {"step": step, "step_at": view.now}
    rows = Attempt.objects.filter(pk=view.attempt.pk, fence=view.attempt.fence).exclude(step=Attempt.Step.ENDED)
    if not rows.update(**values):
        raise FencedOffError(view.attempt.object_name)
