"""Every error of the REST API is a problem with a code, never a 500."""

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.urls import path
from rest_framework import serializers
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient

from jobs.models import Job
from portal.core.errors import DomainError, InvalidInputError, NotAllowedError, StaleEditError
from portal.core.rest.pagination import KeysetPagination
from portal.identity.models import Team, User
from tests.factories import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

ERRORS: dict[str, Exception] = {
    "domain": DomainError(
        "8 GPUs asked, 4 left", code="quota_exceeded", field="workers", numbers={"asked": 8, "left": 4}
    ),
    "input": InvalidInputError({"name": ["too long", "not lower case"], "gpus": ["negative"]}),
    "stale": StaleEditError(),
    "role": NotAllowedError(),
    "missing": Http404("No Job matches the given query."),
    "foreign": Http404(),
    "denied": PermissionDenied(),
    "model": ValidationError({"slug": ["taken"]}),
    "unforeseen": ZeroDivisionError(),
}


class Nested(serializers.Serializer[Any]):
    x = serializers.IntegerField(min_value=1)


class Body(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=3)
    parts = Nested(many=True)


@api_view(["GET"])
@permission_classes([AllowAny])
def fails(_request: Request, kind: str) -> Response:
    raise ERRORS[kind]


@api_view(["POST"])
@permission_classes([AllowAny])
def takes(request: Request) -> Response:
    body = Body(data=request.data)
    body.is_valid(raise_exception=True)
    return Response(body.data)


@api_view(["GET"])
@permission_classes([AllowAny])
def pages(request: Request) -> Response:
    pager = KeysetPagination()
    rows = pager.paginate_queryset(Job.objects.all(), request)
    return pager.get_paginated_response([job.pk for job in rows])


urlpatterns = [path("fails/<kind>/", fails), path("takes/", takes), path("pages/", pages)]


def problem_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = json.loads(response.content)
    assert {"type", "title", "status", "code", "detail", "errors"} <= set(problem)
    assert problem["status"] == status
    return problem


def test_a_refusal_names_field_and_numbers() -> None:
    problem = problem_of(APIClient().get("/fails/domain/"), 409)
    assert problem["code"] == "quota_exceeded"
    assert problem["numbers"] == {"asked": 8, "left": 4}
    assert problem["errors"] == [{"field": "workers", "code": "quota_exceeded", "message": "8 GPUs asked, 4 left"}]


def test_wrong_input_names_every_field() -> None:
    problem = problem_of(APIClient().get("/fails/input/"), 422)
    assert [error["field"] for error in problem["errors"]] == ["name", "name", "gpus"]


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [("stale", 409, "stale"), ("role", 403, "not_allowed"), ("denied", 403, "not_allowed"), ("model", 422, "invalid")],
)
def test_known_errors_have_their_status_and_code(kind: str, status: int, code: str) -> None:
    assert problem_of(APIClient().get(f"/fails/{kind}/"), status)["code"] == code


def test_a_foreign_object_answers_as_a_missing_one() -> None:
    missing, foreign = APIClient().get("/fails/missing/"), APIClient().get("/fails/foreign/")
    assert problem_of(missing, 404)["code"] == "not_found"
    assert missing.content == foreign.content


def test_an_error_that_nobody_foresaw_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        APIClient().get("/fails/unforeseen/")


def test_wrong_shape_names_the_path_of_each_field() -> None:
    response = APIClient().post("/takes/", {"name": "long", "parts": [{"x": 1}, {"x": 0}]}, format="json")
    problem = problem_of(response, 422)
    assert [(error["field"], error["code"]) for error in problem["errors"]] == [
        ("name", "max_length"),
        ("parts.1.x", "min_value"),
    ]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"name": NaN}', "application/json"),
        (b'{"name": "\\u0000"}', "application/json"),
        (b'{"\\ud800": 1}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"name": ' + b"9" * 10_000 + b"}", "application/json"),
        (b"{}", "application/json; charset=utf-32"),
        (b"{}", "application/json; charset=base64"),
    ],
)
def test_a_body_that_is_no_json_is_a_400(body: Any, content_type: str) -> None:
    problem_of(APIClient().generic("POST", "/takes/", body, content_type=content_type), 400)


@pytest.mark.parametrize("body", [b"", b'"text"', b"null", b"[]", b"{}"])
def test_json_of_the_wrong_shape_is_a_422(body: Any) -> None:
    problem_of(APIClient().generic("POST", "/takes/", body, content_type="application/json"), 422)


def test_other_ways_to_ask_wrongly_are_problems_too() -> None:
    problem_of(APIClient().post("/takes/", b"a: 1", content_type="text/html"), 415)
    problem_of(APIClient().get("/takes/"), 405)


def test_a_list_links_to_its_pages(team: Team, alice: User) -> None:
    made = [make_job(team, alice).pk for _ in range(5)]
    first = APIClient().get("/pages/?page_size=2&x=1").json()
    second = APIClient().get(first["next"]).json()

    assert (first["results"], first["previous"]) == ([made[4], made[3]], None)
    assert second["results"] == [made[2], made[1]]
    assert APIClient().get(second["previous"]).json()["results"] == first["results"]
    assert "x=1" in first["next"]
    assert APIClient().get(second["next"]).json()["next"] is None


@pytest.mark.parametrize("query", ["cursor=nonsense", "cursor=%00", "cursor=%ff"])
def test_a_damaged_cursor_is_a_400(query: str) -> None:
    assert problem_of(APIClient().get(f"/pages/?{query}"), 400)["code"] == "damaged_cursor"


@pytest.mark.parametrize("size", ["0", "-1", "201", "x", "", "1e2", "\u0665", "9" * 5000])
def test_a_wrong_page_size_is_a_400(size: str) -> None:
    problem = problem_of(APIClient().get("/pages/", {"page_size": size}), 400)
    assert (problem["code"], problem["numbers"]) == ("invalid_page_size", {"limit": 200})
