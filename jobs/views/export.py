"""The lists as files."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.utils import translation
from django.views.decorators.http import require_GET

from jobs.models import Job
from jobs.selectors.export import csv_pieces
from jobs.selectors.jobs import jobs_visible_to, services_visible_to
from jobs.views.lists import wanted
from portal.core import clock
from portal.core.connections import give_back
from portal.core.http import Request


@login_required
@require_GET
def jobs(request: Request) -> HttpResponseBase:
    """Send the list of jobs as its page shows it, all pages in one."""
    return _csv(request, jobs_visible_to(request.user), "jobs")


@login_required
@require_GET
def services(request: Request) -> HttpResponseBase:
    """Send the list of services."""
    return _csv(request, services_visible_to(request.user), "services")


def _csv(request: Request, visible: QuerySet[Job], name: str) -> HttpResponseBase:
    return csv_response(csv_pieces(wanted(request, visible)), name)


def csv_response(pieces: Iterator[str], name: str) -> HttpResponseBase:
    """Send pieces of CSV as they are made."""
    response = StreamingHttpResponse(_stream(pieces), content_type="text/csv; charset=utf-8; header=present")
    response["Content-Disposition"] = f'attachment; filename="{name}-{clock.now():%Y-%m-%d}.csv"'
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _stream(pieces: Iterator[str]) -> AsyncIterator[bytes]:
    language = translation.get_language() or "en"

    def step() -> str | None:
        # Between two pieces a slow reader must not keep a connection to the database.
        with translation.override(language):
            try:
                return next(pieces, None)
            finally:
                give_back()

    while (piece := await sync_to_async(step)()) is not None:
        yield piece.encode()
