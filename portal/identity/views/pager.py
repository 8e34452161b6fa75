"""Links to the pages around a page, with the filters of the address kept."""

from typing import Any

from django.http import HttpRequest

from portal.core.keyset import Page


def pager_of(request: HttpRequest, page: Page[Any]) -> dict[str, str]:
    """Return `newer_url` and `older_url` for components/pager.html; empty where there is no such page."""
    return {"newer_url": _url(request, page.previous), "older_url": _url(request, page.next)}


def _url(request: HttpRequest, cursor: str | None) -> str:
    if cursor is None:
        return ""
    query = request.GET.copy()
    query["cursor"] = cursor
    return f"?{query.urlencode()}"
