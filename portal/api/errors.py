"""Errors that no view answered: problems below /api/, pages elsewhere. `portal.urls` names these functions."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views import defaults

from portal.core.http import request_id
from portal.core.rest.problem import missing, outside_a_view

PREFIX = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer a request that is malformed as a whole."""
    if not _is_rest(request):
        return defaults.bad_request(request, exception)
    return outside_a_view(400, {"code": "bad_request", "detail": _("The request is malformed.")})


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer a request that something before the views refused."""
    if not _is_rest(request):
        return defaults.permission_denied(request, exception)
    return outside_a_view(403, {"code": "not_allowed", "detail": _("You may not do this.")})


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer an address that is nobody's."""
    if not _is_rest(request):
        return defaults.page_not_found(request, exception)
    return outside_a_view(404, missing())


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer an error that nobody foresaw: what went wrong stands in the log alone, under the request's id."""
    if not _is_rest(request):
        return defaults.server_error(request)
    detail = _("Something broke on our side. Try again; if it stays, tell your administrator the request id.")
    return outside_a_view(500, {"code": "internal_error", "detail": detail, "request_id": request_id()})


def _is_rest(request: HttpRequest) -> bool:
    return request.path_info.startswith(PREFIX)
