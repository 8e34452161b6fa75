"""Personal API tokens: their page, their REST, their secrets."""

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from portal.core.errors import DomainError
from portal.core.models import AuditEvent
from portal.identity.actors import as_actor
from portal.identity.models import ApiToken, User
from portal.identity.services import tokens
from tests.portal.identity import api_urls

pytestmark = [pytest.mark.django_db, pytest.mark.urls(api_urls.__name__)]
PAGE = "/people/tokens/"


def secret_in(text: str) -> str:
    start = text.index("muster_")
    return text[start : start + len("muster_") + 64]


def test_a_token_is_shown_once_and_then_works(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    made = browser.post(PAGE, {"name": "laptop", "days": 30})
    secret = secret_in(made.content.decode())

    assert made.status_code == 201
    assert "no-store" in made.headers["Cache-Control"]
    assert secret not in browser.get(PAGE).content.decode()
    assert ApiToken.objects.get().expiry - timezone.now() > timedelta(days=29)
    client = APIClient(headers={"Authorization": f"Bearer {secret}"})
    assert client.get("/api/v1/teams/").status_code == 200


def test_neither_log_nor_audit_holds_the_secret(
    browser_of: Callable[[User], Client], alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        secret = secret_in(browser_of(alice).post(PAGE, {"name": "laptop", "days": 30}).content.decode())
        APIClient(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/teams/")
    event = AuditEvent.objects.get(action="token.created")
    assert secret not in caplog.text
    assert secret not in str([event.after, event.object_id, event.object_label])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "", "days": 30},
        {"name": "n" * 81, "days": 30},
        {"name": "a\x00b", "days": 30},
        {"name": "ci", "days": 0},
        {"name": "ci", "days": -1},
        {"name": "ci", "days": 366},
        {"name": "ci", "days": "soon"},
        {"name": "ci", "days": "9" * 5000},
        {"name": "ci"},
    ],
)
def test_a_wrong_name_or_life_makes_no_token(
    browser_of: Callable[[User], Client], api_of: Callable[[User], APIClient], alice: User, wrong: dict[str, object]
) -> None:
    assert browser_of(alice).post(PAGE, wrong).status_code == 422
    assert not ApiToken.objects.exists()
    if "days" in wrong:
        # The body with a NUL is refused as a whole, before any field is looked at.
        status = 400 if "\x00" in str(wrong["name"]) else 422
        assert api_of(alice).post("/api/v1/tokens/", wrong, format="json").status_code == status


@pytest.mark.parametrize(
    ("name", "days", "field"), [(" ", 1, "name"), ("n" * 81, 1, "name"), ("ci", 0, "days"), ("ci", 366, "days")]
)
def test_the_rules_hold_without_a_form(alice: User, name: str, days: int, field: str) -> None:
    with pytest.raises(DomainError) as refused:
        tokens.create_token(actor=as_actor(alice), user=alice, name=name, days=days)
    assert refused.value.field == field


def test_nobody_hoards_tokens(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_LIVE", 2)
    first, _secret = tokens.create_token(actor=as_actor(alice), user=alice, name="1", days=1)
    tokens.create_token(actor=as_actor(alice), user=alice, name="2", days=1)
    with pytest.raises(DomainError, match="2 tokens"):
        tokens.create_token(actor=as_actor(alice), user=alice, name="3", days=1)
    tokens.revoke_token(actor=as_actor(alice), token=first)
    tokens.create_token(actor=as_actor(alice), user=alice, name="3", days=1)


def test_a_revoked_token_stops_working_and_stays_listed(
    browser_of: Callable[[User], Client], api_of: Callable[[User], APIClient], alice: User
) -> None:
    client, token = api_of(alice), ApiToken.objects.get()
    browser = browser_of(alice)

    assert browser.post(f"{PAGE}{token.token_key}/revoke/").status_code == 302

    assert client.get("/api/v1/teams/").status_code == 401
    assert token.token_key in browser.get(PAGE).content.decode()
    assert AuditEvent.objects.get().action == "token.revoked"
    browser.post(f"{PAGE}{token.token_key}/revoke/")
    assert AuditEvent.objects.count() == 1


def test_a_foreign_token_is_as_missing_as_none(
    browser_of: Callable[[User], Client], api_of: Callable[[User], APIClient], alice: User, charlie: User
) -> None:
    api_of(alice)
    token_key = ApiToken.objects.get().token_key
    stranger = api_of(charlie)
    assert browser_of(charlie).post(f"{PAGE}{token_key}/revoke/").status_code == 404
    foreign, missing = (stranger.delete(f"/api/v1/tokens/{key}/") for key in (token_key, "muster_00000000"))
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content
    assert not ApiToken.objects.filter(token_key=token_key).exclude(revoked_at=None).exists()


def test_rest_makes_lists_and_revokes(api_of: Callable[[User], APIClient], alice: User) -> None:
    client = api_of(alice)
    made = client.post("/api/v1/tokens/", {"name": "ci", "days": 7}, format="json")
    listed = client.get("/api/v1/tokens/").json()["results"]

    assert made.status_code == 201
    assert made.json()["token"].startswith(made.json()["id"])
    assert [token["name"] for token in listed] == ["ci", "test"]
    assert all("token" not in token for token in listed)
    assert client.delete(f"/api/v1/tokens/{made.json()['id']}/").status_code == 204
    assert client.get("/api/v1/tokens/").json()["results"][0]["revoked_at"] is not None
    event = AuditEvent.objects.get(action="token.created")
    assert event.token_id == ApiToken.objects.get(name="test").token_key
