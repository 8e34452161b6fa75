"""No address fails on a NUL, which the database cannot hold."""

from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.identity.models import User
from tests.matrix_rules import RULES, World, make_world

pytestmark = pytest.mark.django_db
NUL = "a%00b"
# What pages read from their query; no page reads two words of one line, where the first might hide the second.
WORDS = (
    ("from", "cursor", "cluster", "tab", "next", "at", "actor"),
    ("template", "q", "flavor", "rank", "team", "action"),
    ("job", "window", "view"),
)
FILTERS = [(word,) for word in ("state", "kind", "team", "queue", "owner", "days", "label", "mine", "flavor")]


@pytest.fixture
def world() -> World:
    made = make_world()
    User.objects.filter(pk=made.alice.pk).update(is_superuser=True)  # she gets past every permission
    return made


def test_no_operation_of_the_api_fails_on_a_nul(world: World, api_of: Callable[[User], APIClient]) -> None:
    client = api_of(world.alice)
    asked = list(operations())
    for method, address in asked:
        said = client.generic(method, address, "{}", content_type="application/json")
        assert said.status_code < 500, (method, address)
    assert len(asked) > 40


def test_no_page_fails_on_a_nul_in_its_address(world: World, browser_of: Callable[[User], Client]) -> None:
    client = browser_of(world.alice)
    asked = list(addresses(world))
    for method, address in asked:
        assert client.generic(method, address).status_code < 500, (method, address)
    assert len(asked) > 3


def test_no_page_fails_on_a_nul_in_its_query(world: World, browser_of: Callable[[User], Client]) -> None:
    client = browser_of(world.alice)
    pages = [
        name
        for name, rule in RULES.items()
        if "GET" in rule.access and name not in ("readyz", "job_logs") and "api:" not in name
    ]
    for name in pages:
        address = reverse(name, kwargs=RULES[name].own(world))
        for words in (*WORDS, *(FILTERS if name == "jobs:list" else ())):
            query = "&".join(f"{word}={NUL}" for word in words)
            assert client.get(f"{address}?{query}").status_code < 500, (name, words)


def operations() -> Iterator[tuple[str, str]]:
    """Yield method and address of each operation of the schema, a NUL in one of its parameters at a time."""
    schema = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    for path, known in schema["paths"].items():
        for method, operation in known.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    yield method.upper(), path.replace("{" + parameter["name"] + "}", NUL)
                elif "{" not in path:
                    yield method.upper(), f"{path}?{parameter['name']}={NUL}"


def addresses(world: World) -> Iterator[tuple[str, str]]:
    """Yield the addresses whose pattern lets a NUL pass, one in each part that is text."""
    for name, rule in RULES.items():
        own = rule.own(world)
        for part in own:
            try:
                address = reverse(name, kwargs={**own, part: "a\0b"})
            except NoReverseMatch:
                continue
            yield from ((method, address) for method in rule.access)
