"""Whatever a client sends to the REST API: it is read strictly, or refused, never a 500."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.parsers import BaseParser
from rest_framework.test import APIClient

from jobs.models import Job
from portal.core.rest.parsers import DEEPEST, StrictJSONParser
from portal.identity.models import Team, User
from tests.factories import make_job

Rest = Callable[[User], APIClient]
pytestmark = pytest.mark.django_db

GOOD = '{"name": "vit", "image": "team/torch:2.9"}'
NO_JSON = [
    '{"name": "a", "name": "b", "image": "x"}',
    '{"name": "a", "labels": {"x": "1", "x": "2"}}',
    '{"name": NaN}',
    '{"name": -Infinity}',
    '{"name": 1e999}',
    '{"name": "\\u0000"}',
    '{"name": "\\ud800"}',
    '{"\\udfff": 1}',
    '{"name": ' + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1) + "}",
    '{"name": ' + "[" * 100_000,
    '{"name": ' + "9" * 10_000 + "}",
    "{'name': 'a'}",
    "\ufeff" + GOOD,
]


def parsers_of(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, type[BaseParser]]]:
    """Yield each address of the API with each parser that its view may choose."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from parsers_of(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and hasattr(pattern.callback, "cls"):
            yield from ((address, parser) for parser in pattern.callback.cls.parser_classes)


def test_every_view_reads_json_with_the_one_strict_parser() -> None:
    found = list(parsers_of(get_resolver().url_patterns))
    assert {address for address, _parser in found} > {"api/v1/^jobs/$", "api/v1/^preview/$", "api/v1/^tokens/$"}
    known = {"application/json": StrictJSONParser, "application/yaml": None, "text/yaml": None}
    for address, parser in found:
        assert parser.media_type in known, address
        assert known[parser.media_type] in (parser, None), address


@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: body[:30])
@pytest.mark.parametrize("address", ["jobs/", "jobs/batch/", "preview/", "jobs/{uid}/scale/", "tokens/"])
def test_a_body_that_is_no_json_is_refused_whole(
    api_of: Rest, alice: User, team: Team, address: str, body: str
) -> None:
    job = make_job(team, alice, kind=Job.Kind.INFERENCE)
    body = f"[{body}]" if "batch" in address else body
    url = "/api/v1/" + address.format(uid=job.uid)
    said = api_of(alice).generic("POST", url, body, content_type="application/json")

    assert (said.status_code, said.json()["code"]) == (400, "parse_error")
    assert Job.objects.count() == 1


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml", "text/yaml"])
def test_a_body_that_is_too_large_is_refused_unread(api_of: Rest, alice: User, content_type: str) -> None:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    said, fits = (
        api_of(alice).generic("POST", "/api/v1/jobs/", "[" + " " * size + "]", content_type=content_type)
        for size in (most, most - 2)
    )

    assert (said.status_code, said.json()["code"]) == (413, "body_too_large")
    assert fits.status_code in (409, 422)  # read, and no JobSpec


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
@pytest.mark.parametrize("address", ["jobs/?team=vision", "preview/"])
def test_an_empty_body_is_called_empty(api_of: Rest, alice: User, team: Team, address: str, content_type: str) -> None:
    said = api_of(alice).generic("POST", f"/api/v1/{address}", "", content_type=content_type)

    assert (said.status_code, said.json()["code"]) == (422, "empty_body")
    assert said.json()["detail"] == "The body is empty."


def test_the_deepest_body_is_still_read(api_of: Rest, alice: User) -> None:
    body = '{"name": ' + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + "}"
    said = api_of(alice).generic("POST", "/api/v1/jobs/", body, content_type="application/json")

    assert said.status_code == 422
    assert "name" in {error["field"] for error in said.json()["errors"]}
