"""Drop rows that nothing needs any more, a batch at a time."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from portal.core.models import IdempotencyRecord

# The longest that a client may wait before it sends its request again and still gets the first answer.
ANSWERS_FOR = timedelta(hours=24)
# One run deletes at most so many rows of a kind, so that it stays short; the next one goes on.
AT_ONCE = 5_000


def prune(now: datetime) -> int:
    """Delete answers and sessions that are over; return how many rows went."""
    answers = IdempotencyRecord.objects.filter(created_at__lt=now - ANSWERS_FOR)
    sessions = Session.objects.filter(expire_date__lt=now)
    return delete_batch(answers) + delete_batch(sessions)


def delete_batch(rows: QuerySet[Any]) -> int:
    """Delete the first AT_ONCE of the rows; return how many went."""
    first = rows.order_by("pk").values("pk")[:AT_ONCE]
    deleted: int = rows.model.objects.filter(pk__in=first).delete()[0]
    return deleted
