"""Signing in and out, guessing, and the chosen team."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.core import clock
from portal.core.models import AuditEvent
from portal.identity.models import AttemptCounter, Team, User
from portal.identity.services import accounts
from tests.factories import PASSWORD, make_membership

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.portal.urls")]


def sign_in(client: Client, password: str = PASSWORD, username: str = "alice", **extra: str) -> Any:
    return client.post("/sign-in/", {"username": username, "password": password, **extra})


def test_a_person_signs_in_and_gets_a_fresh_session(client: Client, alice: User) -> None:
    client.get("/sign-in/")
    session = client.session
    session["before"] = "kept from the visitor"
    session.save()
    old_key = str(session.session_key)
    client.cookies["sessionid"] = old_key

    response = sign_in(client)

    assert (response.status_code, response.url) == (302, "/")
    assert client.session.session_key != old_key
    assert AuditEvent.objects.get().action == "person.signed_in"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_sign_in_does_not_lead_to_another_site(client: Client, alice: User, wanted: str) -> None:
    assert sign_in(client, next=wanted).url == "/"


def test_sign_in_leads_to_the_page_that_was_asked_for(client: Client, alice: User) -> None:
    asked = client.get("/people/team/")
    assert asked.status_code in (302, 405)
    assert sign_in(client, next="/jobs/list/?q=a").url == "/jobs/list/?q=a"


@pytest.mark.parametrize("wanted", ["jobs", "home", "a\x00b"])
def test_a_word_that_is_no_address_leads_home(client: Client, alice: User, wanted: str) -> None:
    assert sign_in(client, next=wanted).url == "/"


def test_a_wrong_password_and_a_wrong_name_look_the_same(client: Client, alice: User) -> None:
    wrong_password = sign_in(client, "wrong")
    wrong_name = sign_in(client, "wrong", username="nobody")

    assert wrong_password.status_code == wrong_name.status_code == 422
    assert _body(wrong_password, "alice") == _body(wrong_name, "nobody")


def test_after_too_many_tries_even_the_right_password_is_refused_in_the_same_words(client: Client, alice: User) -> None:
    answers = [sign_in(client, "wrong") for _ in range(accounts.TRIES_PER_ACCOUNT)]

    locked = sign_in(client)

    assert _body(locked, "alice") == _body(answers[0], "alice")
    assert "_auth_user_id" not in client.session


def test_the_lock_ends_after_a_quarter_of_an_hour(client: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(accounts.TRIES_PER_ACCOUNT):
        sign_in(client, "wrong")
    later = timezone.now() + timedelta(minutes=16)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert sign_in(client).status_code == 302


def test_a_right_password_forgives_the_wrong_ones_before(client: Client, alice: User) -> None:
    for _ in range(accounts.TRIES_PER_ACCOUNT - 1):
        sign_in(client, "wrong")
    assert sign_in(client).status_code == 302
    client.logout()
    assert sign_in(client, "wrong").status_code == 422
    assert sign_in(client).status_code == 302


def test_another_address_is_not_locked_out(client: Client, alice: User) -> None:
    for _ in range(accounts.TRIES_PER_ACCOUNT):
        sign_in(client, "wrong")

    elsewhere = Client(REMOTE_ADDR="192.0.2.7")

    assert sign_in(elsewhere).status_code == 302


def test_one_address_cannot_try_one_password_on_every_account(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "TRIES_PER_ADDRESS", 3)
    for number in range(3):
        sign_in(client, "wrong", username=f"person{number}")

    assert sign_in(client).status_code == 422


def test_a_forged_forwarding_header_does_not_reset_the_count(client: Client, alice: User, settings: Settings) -> None:
    for number in range(accounts.TRIES_PER_ACCOUNT):
        client.post(
            "/sign-in/",
            {"username": "alice", "password": "wrong"},
            headers={"X-Forwarded-For": f"10.0.0.{number}"},
        )
    assert sign_in(client).status_code == 422


def test_behind_our_proxy_the_entry_it_wrote_counts(client: Client, alice: User, settings: Settings) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    for number in range(accounts.TRIES_PER_ACCOUNT):
        client.post(
            "/sign-in/",
            {"username": "alice", "password": "wrong"},
            headers={"X-Forwarded-For": f"10.0.0.{number}, 192.0.2.1"},
        )
    locked = client.post(
        "/sign-in/",
        {"username": "alice", "password": PASSWORD},
        headers={"X-Forwarded-For": "10.9.9.9, 192.0.2.1"},
    )
    assert locked.status_code == 422


def test_the_counters_hold_no_name(client: Client, alice: User) -> None:
    sign_in(client, "wrong")
    assert all("alice" not in counter.key for counter in AttemptCounter.objects.all())


@pytest.mark.parametrize("username", ["", "a" * 151, "a\x00b", "\ud800", "алиса", "' OR 1=1 --"])
def test_odd_names_are_refused_without_an_error(client: Client, username: str) -> None:
    response = client.post(
        "/sign-in/", {"username": username.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "password": "x"}
    )
    assert response.status_code == 422


def test_an_inactive_person_cannot_sign_in(client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert sign_in(client).status_code == 422


def test_signing_out_needs_a_post_and_ends_the_session(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    assert browser.get("/sign-out/").status_code == 405
    assert browser.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert "_auth_user_id" not in browser.session
    assert AuditEvent.objects.get().action == "person.signed_out"


def test_signing_in_needs_the_csrf_token(alice: User) -> None:
    assert sign_in(Client(enforce_csrf_checks=True)).status_code == 403


def test_the_chosen_team_stays_chosen(
    browser_of: Callable[[User], Client], alice: User, other_team: Team, team: Team
) -> None:
    make_membership(alice, other_team)
    browser = browser_of(alice)

    response = browser.post("/people/team/", {"team": team.pk, "next": "/jobs/list/"})

    assert response.headers["Location"] == "/jobs/list/"
    request: Any = browser.get("/").wsgi_request
    assert request.team == team


def test_a_foreign_team_cannot_be_chosen(browser_of: Callable[[User], Client], alice: User, other_team: Team) -> None:
    for value in (str(other_team.pk), "999999999999999999999999", "x", "", "\x00"):
        assert browser_of(alice).post("/people/team/", {"team": value}).status_code == 404


def _body(response: Any, name: str) -> str:
    """The page without what is drawn by chance or typed by the person."""
    text = response.content.decode().replace(name, "NAME")
    return "".join(
        line for line in text.splitlines() if "csrf" not in line.lower() and "request id" not in line.lower()
    )
