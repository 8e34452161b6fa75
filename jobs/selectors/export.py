"""Job lists as CSV, piece by piece, for spreadsheets and programs."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.selectors.rows import JobRow, rows_of
from portal.core.keyset import keyset_page

MOST = 10_000
AT_ONCE = 500
COLUMNS = (
    *("id", "name", "kind", "state", "outcome", "detail", "team", "queue", "owner", "priority"),
    *("workers", "gpus_per_worker", "gpus", "accelerators", "labels", "is_synthetic"),
    *("created_at", "started_at", "finished_at"),
)
# A spreadsheet takes a text that begins with one of these for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last ones full-width


def csv_pieces(jobs: QuerySet[Job]) -> Iterator[str]:
    """Yield the heading and then the jobs, newest first, a bounded number of queries and rows a piece.

    The list ends after MOST jobs; a last line says so when there are more.
    """
    yield lines([COLUMNS])
    cursor, left = None, MOST
    while left > 0:
        page = keyset_page(jobs, cursor=cursor, size=min(left, AT_ONCE))
        yield lines(_cells(row) for row in rows_of(page.rows))
        cursor, left = page.next, left - len(page.rows)
        if cursor is None:
            return
    yield lines(
        [[_("Only the newest %(most)d jobs. Narrow the list with filters to see the others.") % {"most": MOST}]]
    )


def instant(at: datetime | None) -> str:
    """A moment as a spreadsheet takes it; empty for none."""
    return at.isoformat(timespec="seconds") if at else ""


def lines(rows: Iterable[Sequence[object]]) -> str:
    """Rows as lines of CSV, with nothing in them that a spreadsheet would run."""
    text = io.StringIO()
    csv.writer(text).writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cells(row: JobRow) -> Sequence[object]:
    job = row.job
    return (
        *(job.uid, job.full_name, job.kind, job.state, job.outcome_code, row.line),
        *(job.team.slug, job.queue.name, job.owner.username, job.priority_class.name),
        *(job.workers, job.gpus_per_worker, job.gpus, " ".join(job.spec.get("accelerators") or [])),
        " ".join(f"{key}={value}" if value else key for key, value in sorted(job.labels.items())),
        *(str(job.is_synthetic).lower(), instant(job.created_at), instant(job.started_at), instant(job.finished_at)),
    )


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
