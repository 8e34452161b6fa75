"""Below /api/ every error is a problem, also one that no view answers; elsewhere it stays a page."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from portal.identity.models import User
from portal.urls import handler400, handler403, handler404, handler500
from portal.urls import urlpatterns as product

__all__ = ["handler400", "handler403", "handler404", "handler500"]
BrowserOf = Callable[[User], Client]
pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]
SECRET = "sesame-open-5f2c"


@api_view(["GET"])
@permission_classes([AllowAny])
def breaks(_request: Request) -> Response:
    raise RuntimeError(SECRET)


def malformed(_request: HttpRequest) -> HttpResponse:
    raise BadRequest(SECRET)


def denied(_request: HttpRequest) -> HttpResponse:
    raise PermissionDenied(SECRET)


VIEWS: dict[str, Callable[..., Any]] = {"breaks": breaks, "malformed": malformed, "denied": denied}
urlpatterns = [
    *(path(f"{prefix}{name}/", view) for prefix in ("api/v1/", "pages/") for name, view in VIEWS.items()),
    *product,
]


def problem_of(response: Any) -> dict[str, Any]:
    assert response.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = json.loads(response.content)
    assert {"type", "title", "status", "code", "detail", "errors"} <= set(problem)
    assert problem["status"] == response.status_code
    assert SECRET not in response.content.decode()
    return problem


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)


def test_an_error_that_nobody_foresaw_tells_its_request_id_and_nothing_of_the_cause(
    visitor: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        problem = problem_of(visitor.get("/api/v1/breaks/"))

    assert (problem["status"], problem["code"]) == (500, "internal_error")
    assert len(problem["request_id"]) == 36
    assert SECRET in caplog.text  # the log has it


@pytest.mark.parametrize("address", ["", "v1/", "v1/nonsense/", "v2/jobs/", "v1/jobs/a/b/c/", "v1/queue/x/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_address_that_nobody_knows_answers_as_a_missing_object(
    alice: User, browser_of: BrowserOf, address: str, method: str
) -> None:
    answer = getattr(browser_of(alice), method)(f"/api/{address}", headers={"accept": "text/html"})
    missing = browser_of(alice).get("/api/v1/jobs/zzzzzzzzzzzz/")

    assert (answer.status_code, problem_of(answer)["code"]) == (404, "not_found")
    assert problem_of(answer) == problem_of(missing)


@pytest.mark.parametrize(
    ("name", "status", "code"), [("malformed", 400, "bad_request"), ("denied", 403, "not_allowed")]
)
def test_what_is_refused_before_a_rest_view_is_a_problem(visitor: Client, name: str, status: int, code: str) -> None:
    answer = visitor.get(f"/api/v1/{name}/")

    assert (answer.status_code, problem_of(answer)["code"]) == (status, code)


@pytest.mark.parametrize(
    ("address", "status"),
    [("/pages/breaks/", 500), ("/pages/malformed/", 400), ("/pages/denied/", 403), ("/apis/", 404)],
)
def test_elsewhere_an_error_stays_a_page(visitor: Client, address: str, status: int) -> None:
    answer = visitor.get(address)

    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "<h1>" in answer.content.decode()
