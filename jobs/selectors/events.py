"""The log of a job."""

from dataclasses import dataclass
from datetime import datetime

from jobs.explain.events import sentence
from jobs.models import Job, JobEvent

Document = dict[str, object]
# More than a job with twenty attempts writes; the newest count.
MOST = 500


@dataclass(frozen=True, slots=True)
class EventLine:
    """One line of the log as a page shows it."""

    at: datetime
    message: str
    actor: str


def lines_of(job: Job, most: int = MOST) -> list[EventLine]:
    """Return the newest lines of the job's log, newest first."""
    rows = job.events.order_by("-id")[:most]
    return [EventLine(row.at, sentence(row.code, row.data, is_service=job.is_service), row.actor) for row in rows]


def events_of(job: Job) -> list[Document]:
    """Return the job's log, newest first, each line with its sentence."""
    return [_document(event, is_service=job.is_service) for event in job.events.order_by("-id")[:MOST]]


def _document(event: JobEvent, *, is_service: bool) -> Document:
    return {
        "id": event.pk,
        "at": event.at.isoformat(),
        "code": event.code,
        "message": sentence(event.code, event.data, is_service=is_service),
        "data": event.data,
        "actor": event.actor,
    }
