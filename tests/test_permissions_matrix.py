"""Every address x every person: a page that nobody wrote a rule for fails here by its name."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from django.db import transaction
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from portal.identity.models import ApiToken
from tests.matrix_rules import FORBIDDEN, MISSING, OPEN, RULES, SIGN_IN, Arguments, World, make_world

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STRONGEST = ("visitor", "alice", "admin")  # what these may not do, nobody may
WRONG_METHOD, ERROR = "wrong method", "error"
URLCONF = "portal.urls"
pytestmark = pytest.mark.django_db


def addresses(resolver: URLResolver, prefix: tuple[str, ...] = (), route: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the route of every address below."""
    for part in resolver.url_patterns:
        whole = route + str(part.pattern)
        if isinstance(part, URLResolver):
            yield from addresses(part, (*prefix, part.namespace) if part.namespace else prefix, whole)
        else:
            yield ":".join((*prefix, part.name or "")), whole


ADDRESSES = list(addresses(get_resolver(URLCONF)))
NAMES = sorted({name for name, _route in ADDRESSES})


def test_every_address_has_a_name_of_its_own() -> None:
    names = [name for name, _route in ADDRESSES]
    assert not [(name, route) for name, route in ADDRESSES if not name.rpartition(":")[2] or names.count(name) > 1]


def test_no_rule_is_left_of_an_address_that_is_gone() -> None:
    wired = {name.rpartition(":")[0] for name in NAMES}
    assert not [name for name in RULES if name not in NAMES and name.rpartition(":")[0] in wired]


@pytest.mark.parametrize("name", NAMES)
def test_an_address_answers_each_person_as_its_rule_says(name: str) -> None:
    assert name in RULES, f"{name} has no rule: say in tests/matrix_rules.py who may use it"
    rule, world = RULES[name], make_world()
    address = reverse(name, urlconf=URLCONF, kwargs=rule.own(world))
    nothing = rule.missing and reverse(name, urlconf=URLCONF, kwargs=rule.missing(world))
    for method, person in product(METHODS, ("visitor", *world.people)):
        wanted, where = rule.access.get(method, {}).get(person), f"{method} {name} by {person}"
        if wanted is None and person not in STRONGEST:
            continue
        for client in clients(world, person, address):
            with undone():
                response = ask(client, method, address, rule.data(world))
                check(response, wanted, where)
            if nothing and wanted in (OPEN, MISSING):
                with undone():
                    check_missing(response, ask(client, method, nothing, rule.data(world)), where)


def check(response: HttpResponseBase, wanted: str | None, where: str) -> None:
    seen = word_of(response)
    if wanted is None:
        assert seen in (WRONG_METHOD, SIGN_IN, FORBIDDEN, MISSING), f"{where}: {seen}, a method without a rule"
    else:
        assert seen == wanted, where


def check_missing(response: HttpResponseBase, of_nothing: HttpResponseBase, where: str) -> None:
    assert word_of(of_nothing) == MISSING, f"{where}, of an object that never was"
    if word_of(response) == MISSING:
        assert words_of(response) == words_of(of_nothing), f"{where}: a foreign object is told from a missing one"


def clients(world: World, person: str, address: str) -> Iterator[Client]:
    """Yield a browser of the person and, for REST, also a program with their token."""
    user = world.people.get(person)
    browser = Client(raise_request_exception=False)
    if user is not None:
        browser.force_login(user)
    yield browser
    if user is not None and address.startswith("/api/"):
        _row, secret = ApiToken.objects.create(user, name="matrix")
        yield Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def ask(client: Client, method: str, address: str, data: Arguments) -> Any:
    if method == "GET":
        return client.get(address)
    if address.startswith("/api/"):
        return client.generic(method, address, json.dumps(data), content_type="application/json")
    return client.post(address, data) if method == "POST" else client.generic(method, address)


def word_of(response: HttpResponseBase) -> str:
    """Return what the answer means; its body is not read, since a stream would never end."""
    if response.status_code == 302 and response.headers["Location"].startswith("/sign-in/?next="):
        return SIGN_IN
    known = {401: SIGN_IN, 403: FORBIDDEN, 404: MISSING, 405: WRONG_METHOD}
    return known.get(response.status_code, ERROR if response.status_code == 500 else OPEN)


def words_of(response: Any) -> str:
    """Return the body without what differs at every request."""
    return re.sub(r"<code><bdi>[0-9a-f-]{36}</bdi></code>|csrf[^>]*>|X-CSRFToken[^>]*>", "", response.content.decode())


@contextmanager
def undone() -> Iterator[None]:
    """Take back all that is done inside, so that each person finds the same world."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
