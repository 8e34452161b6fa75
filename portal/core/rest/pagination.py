"""Lists of the REST API, page by page."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from portal.core.errors import DomainError
from portal.core.keyset import NEWEST_FIRST, Page, keyset_page

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200


class PageSizeError(DomainError):
    """The page size is no number or out of range."""

    code = "invalid_page_size"
    status = 400

    def __init__(self) -> None:
        text = _("Ask for 1 to {limit} rows a page.").format(limit=MAX_PAGE_SIZE)
        super().__init__(text, field="page_size", numbers={"limit": MAX_PAGE_SIZE})


class KeysetPagination(BasePagination):
    """`?cursor=...&page_size=...`. A view with another order names it in `keyset_order`; the last column is unique."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        """Return the rows of the asked page. Raise DomainError (400) for a damaged cursor or a wrong size."""
        order: Sequence[str] = getattr(view, "keyset_order", NEWEST_FIRST)
        cursor = request.query_params.get("cursor")
        self.url = request.build_absolute_uri()
        self.page: Page[Model] = keyset_page(queryset, cursor=cursor, size=_page_size(request), order=order)
        return self.page.rows

    def get_paginated_response(self, data: object) -> Response:
        """Wrap the rows with the addresses of the pages around them."""
        return Response(
            {"next": self._link(self.page.next), "previous": self._link(self.page.previous), "results": data}
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe the wrapped list in the OpenAPI document."""
        link = {"type": "string", "format": "uri", "nullable": True}
        properties = {"next": link, "previous": link, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:  # noqa: ARG002 -- DRF's signature
        """Describe the two query parameters in the OpenAPI document."""
        size = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": PAGE_SIZE}
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {"name": "page_size", "in": "query", "required": False, "schema": size},
        ]

    def _link(self, cursor: str | None) -> str | None:
        return replace_query_param(remove_query_param(self.url, "cursor"), "cursor", cursor) if cursor else None


def _page_size(request: Request) -> int:
    asked = request.query_params.get("page_size", str(PAGE_SIZE))
    # isdecimal alone accepts digits of every script, and int() has a limit of its own on their number.
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= 4 and 1 <= int(asked) <= MAX_PAGE_SIZE):
        raise PageSizeError
    return int(asked)
