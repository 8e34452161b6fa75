"""Every error of the REST API as application/problem+json with a stable `code` (RFC 9457)."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.core.errors import DomainError, InvalidInputError

CONTENT_TYPE = "application/problem+json"
Problem = dict[str, Any]


def handler(exc: Exception, _context: Mapping[str, Any]) -> Response | None:
    """Return the answer to an error, or None for one that nobody foresaw (Django answers and logs it)."""
    if isinstance(exc, DomainError):
        answer = _answer(exc.status, _domain_problem(exc))
    elif isinstance(exc, Http404 | exceptions.NotFound):
        answer = _answer(404, missing())
    elif isinstance(exc, PermissionDenied | exceptions.PermissionDenied):
        answer = _answer(403, {"code": "not_allowed", "detail": str(exc) or _("You may not do this.")})
    elif isinstance(exc, ValidationError):
        answer = _answer(422, _invalid(list(_model_errors(exc))))
    elif isinstance(exc, exceptions.ValidationError):
        # As the rules of the services answer: whoever calls need not know which of the two refused a value.
        answer = _answer(422, _invalid(list(_flat(exc.detail))))
    elif isinstance(exc, exceptions.APIException):
        answer = _answer(exc.status_code, _api_problem(exc))
        _add_headers(answer, exc)
    else:
        return None
    set_rollback()
    return answer


def missing() -> Problem:
    """Return the same words for what is missing, for what is somebody else's, and for an address that nobody knows."""
    return {"code": "not_found", "detail": _("There is no such object.")}


def outside_a_view(status: int, problem: Problem) -> JsonResponse:
    """Answer where no view of the REST framework does."""
    return JsonResponse(_whole(status, problem), status=status, content_type=CONTENT_TYPE)


def _answer(status: int, problem: Problem) -> Response:
    return Response(_whole(status, problem), status=status, content_type=CONTENT_TYPE)


def _whole(status: int, problem: Problem) -> Problem:
    return {
        "type": f"urn:muster:problem:{problem['code']}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "errors": [],
        **problem,
    }


def _domain_problem(exc: DomainError) -> Problem:
    if isinstance(exc, InvalidInputError):
        errors = [_error(fault.field, fault.code, fault.message) for fault in exc.faults]
    else:
        errors = [_error(exc.field, exc.code, exc.message)] if exc.field else []
    problem: Problem = {"code": exc.code, "detail": exc.message, "errors": errors}
    return {**problem, "numbers": exc.numbers} if exc.numbers else problem


def _api_problem(exc: exceptions.APIException) -> Problem:
    code = exc.detail.code if isinstance(exc.detail, exceptions.ErrorDetail) else exc.default_code
    return {"code": code, "detail": str(exc.detail)}


def _invalid(errors: list[Problem]) -> Problem:
    return {"code": "invalid", "detail": _("Some fields need another value."), "errors": errors}


def _flat(detail: object, path: str = "") -> Iterator[Problem]:
    """Yield the errors of nested fields and lists, each with its dotted path."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flat(value, path if key == "non_field_errors" else f"{path}.{key}".strip("."))
    elif isinstance(detail, list):
        for index, item in enumerate(detail):
            nested = isinstance(item, dict | list)
            yield from _flat(item, f"{path}.{index}".strip(".") if nested else path)
    elif isinstance(detail, exceptions.ErrorDetail):
        yield _error(path or None, detail.code, str(detail))


def _model_errors(exc: ValidationError) -> Iterator[Problem]:
    by_field = exc.message_dict if hasattr(exc, "error_dict") else {"": exc.messages}
    for field, messages in by_field.items():
        for message in messages:
            yield _error(field if field not in ("", "__all__") else None, "invalid", message)


def _error(field: str | None, code: str | None, message: str) -> Problem:
    return {"field": field, "code": code, "message": message}


def _add_headers(answer: Response, exc: exceptions.APIException) -> None:
    if header := getattr(exc, "auth_header", None):
        answer["WWW-Authenticate"] = header
    if wait := getattr(exc, "wait", None):
        answer["Retry-After"] = str(int(wait))
