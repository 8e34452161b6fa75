"""Invitations: a link for one address, once, for seven days."""

import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.core.errors import DomainError, InvalidInputError
from portal.core.models import AuditEvent
from portal.identity.actors import as_actor
from portal.identity.models import Invitation, Membership, Team, User
from portal.identity.services import invitations
from tests.factories import PASSWORD, make_membership, make_team, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.portal.urls")]
INVITE = "/people/teams/vision/invite/"
ANSWER = "/people/invitations/"
NAME_RULE = "Letters a-z and A-Z, digits, “.”, “_” and “-”, at most 40 characters."
NEW_PASSWORD = "seventeen grey herons"


def invite(browser: Client, email: str = "dana@example.com", role: str = "member") -> str:
    """Return the path of the link."""
    page = browser.post(INVITE, {"email": email, "role": role})
    assert page.status_code == 201
    found = re.search(r"http://testserver(/people/invitations/[^/]+/)", page.content.decode())
    assert found is not None
    return found[1]


def register(link: str, username: str = "dana", password: str = NEW_PASSWORD) -> Any:
    browser = Client()
    browser.get(link)
    return browser.post(ANSWER, {"username": username, "password": password})


@pytest.fixture
def owner(browser_of: Callable[[User], Client], alice: User) -> Client:
    return browser_of(alice)


def test_the_link_is_mailed_shown_once_and_kept_as_a_digest(owner: Client, alice: User) -> None:
    link = invite(owner)
    secret = link.rstrip("/").rpartition("/")[2]

    assert mail.outbox[0].to == ["dana@example.com"]
    assert link in str(mail.outbox[0].body)
    assert secret not in owner.get("/people/teams/vision/").content.decode()
    assert Invitation.objects.get().digest == invitations.digest_of(secret) != secret
    assert "dana@example.com" in owner.get("/people/teams/vision/").content.decode()


def test_no_log_holds_the_secret(owner: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        link = invite(owner)
        register(link)
    assert link.rstrip("/").rpartition("/")[2] not in caplog.text
    assert "/people/invitations/***/" in caplog.text


def test_a_newcomer_makes_an_account_and_is_in_the_team(owner: Client, team: Team) -> None:
    response = register(invite(owner, role="viewer"))

    dana = User.objects.get(username="dana")
    assert response.headers["Location"] == "/people/teams/vision/"
    assert dana.email == "dana@example.com"
    assert dana.check_password(NEW_PASSWORD)
    assert Membership.objects.get(user=dana).role == "viewer"
    assert not dana.is_superuser
    actions = AuditEvent.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["invitation.created", "person.registered", "invitation.accepted", "person.signed_in"]


def test_a_person_who_has_an_account_joins_with_a_click(
    owner: Client, browser_of: Callable[[User], Client], charlie: User, team: Team
) -> None:
    link, browser = invite(owner, charlie.email.upper()), browser_of(charlie)
    assert "Join the team" in browser.get(link, follow=True).content.decode()
    assert browser.post(ANSWER).headers["Location"] == "/people/teams/vision/"
    assert Membership.objects.filter(user=charlie, team=team).exists()
    assert browser.get("/").wsgi_request.session["team_id"] == team.pk


def test_nobody_else_joins_with_the_link(
    owner: Client, browser_of: Callable[[User], Client], charlie: User, team: Team
) -> None:
    link, browser = invite(owner), browser_of(charlie)
    browser.get(link)
    assert browser.post(ANSWER).status_code == 409
    assert not Membership.objects.filter(user=charlie, team=team).exists()
    assert invitations.open_invitations().exists()


def test_a_name_that_differs_in_case_alone_is_taken(owner: Client, alice: User) -> None:
    page = register(invite(owner), alice.username.title())
    assert page.status_code == 422
    assert "This name is taken." in page.content.decode()
    assert not User.objects.filter(username=alice.username.title()).exists()


@pytest.mark.parametrize(("field", "other"), [("username", "ALICE"), ("email", "ALICE@example.com")])
def test_the_database_tells_no_people_apart_by_case(alice: User, field: str, other: str) -> None:
    twin = make_user("twin")
    User.objects.filter(pk=alice.pk).update(username="alice", email="alice@example.com")
    with pytest.raises(IntegrityError):
        User.objects.filter(pk=twin.pk).update(**{field: other})


def test_a_link_works_once(owner: Client) -> None:
    link = invite(owner)
    register(link)
    assert register(link, "eve").status_code == 404
    assert not User.objects.filter(username="eve").exists()


def test_a_link_works_for_seven_days(owner: Client) -> None:
    link = invite(owner)
    assert Invitation.objects.get().expires_at - timezone.now() > timedelta(days=6, hours=23)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert register(link).status_code == 404


def test_a_revoked_link_does_not_work(owner: Client) -> None:
    link = invite(owner)
    owner.post(f"/people/teams/vision/invitations/{Invitation.objects.get().pk}/revoke/")
    assert register(link).status_code == 404
    assert AuditEvent.objects.filter(action="invitation.revoked").count() == 1


def test_a_second_invitation_ends_the_first(owner: Client) -> None:
    first = invite(owner)
    second = invite(owner, "DANA@example.com")
    assert register(first).status_code == 404
    assert register(second).status_code == 302


def test_an_expired_invitation_does_not_stop_a_new_one(owner: Client) -> None:
    invite(owner)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert register(invite(owner)).status_code == 302


@pytest.mark.parametrize("secret", ["x", "x" * 5000, "%00", "%ff", "..", "'"])
def test_an_unknown_link_is_as_closed_as_a_used_one(client: Client, secret: str) -> None:
    assert client.get(f"{ANSWER}{secret}/", follow=True).status_code == 404


@pytest.mark.parametrize(
    "email", ["", "x", "a@b", "a" * 300 + "@example.com", "a\x00@example.com", "a@example.com\nBcc: b@example.com"]
)
def test_a_wrong_address_is_not_invited(owner: Client, email: str) -> None:
    assert owner.post(INVITE, {"email": email, "role": "member"}).status_code == 422
    assert not Invitation.objects.exists()
    assert not mail.outbox


def test_a_member_is_not_invited_again(owner: Client, bob: User) -> None:
    assert owner.post(INVITE, {"email": "BOB@example.com", "role": "owner"}).status_code == 422


def test_a_mail_server_that_is_down_leaves_the_link_to_hand_over(owner: Client, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    page = owner.post(INVITE, {"email": "dana@example.com", "role": "member"})
    assert "could not be sent" in page.content.decode()
    assert Invitation.objects.exists()


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("dana", "short"),
        ("dana", "password1234"),
        ("dana", "dana@example.com"),
        ("alice", NEW_PASSWORD),
        ("", NEW_PASSWORD),
        ("d" * 41, NEW_PASSWORD),
        ("da na", NEW_PASSWORD),
        ("dana", ""),
    ],
)
def test_a_weak_password_or_a_taken_name_makes_no_account(owner: Client, username: str, password: str) -> None:
    assert register(invite(owner), username, password).status_code == 422
    assert User.objects.count() == 1
    assert invitations.open_invitations().exists()


@pytest.mark.parametrize(
    "username",
    [
        *("d\u0430na", "\u0430lice", "\u03bfwen", "\uff44ana", "\u0501ana", "d\u00e4na", "\u0663", "dana\u0301"),
        *("da\u200bna", "dana\u00ad", "da\u00a0na", "dana@example.com", "da+na", "da/na", "da\nna", "da\x00na"),
    ],
    ids=ascii,
)
def test_no_new_name_can_be_taken_for_another(owner: Client, username: str) -> None:
    page = register(invite(owner), username)

    assert page.status_code == 422
    assert "username" in page.context["form"].errors
    assert NAME_RULE in page.content.decode()
    with pytest.raises(InvalidInputError) as refused:
        invitations.register(digest=Invitation.objects.get().digest, username=username, password=NEW_PASSWORD)
    assert refused.value.problems == {"username": [NAME_RULE]}
    assert User.objects.count() == 1


@pytest.mark.parametrize("username", ["dana", "Dana.M_2-x", "7", "d" * 40])
def test_a_plain_name_of_up_to_forty_characters_is_taken(owner: Client, username: str) -> None:
    assert register(invite(owner), username).status_code == 302
    assert User.objects.filter(username=username).exists()


def test_a_name_from_before_the_rule_still_signs_in(client: Client) -> None:
    make_user("d\u00e4na@work")

    assert client.login(username="d\u00e4na@work", password=PASSWORD)
    page = client.post("/people/profile/", {"theme": "dark", "time_zone": "UTC"})
    assert page.status_code == 302
    assert User.objects.get().theme == "dark"


def test_a_member_of_another_team_cannot_close_an_invitation(
    owner: Client, browser_of: Callable[[User], Client], charlie: User
) -> None:
    invite(owner)
    number = Invitation.objects.get().pk
    for team in ("speech", "vision"):
        assert browser_of(charlie).post(f"/people/teams/{team}/invitations/{number}/revoke/").status_code == 404
    assert invitations.open_invitations().exists()


@pytest.mark.django_db(transaction=True)
def test_a_link_that_is_used_twice_at_once_works_once() -> None:
    team = make_team()
    owner = make_membership(make_user(), team, "owner").user
    invited = invitations.invite(
        actor=as_actor(owner), team=team, email="dana@example.com", role="member", link_to=lambda secret: secret
    )
    digest, barrier = invitations.digest_of(invited.link), Barrier(2)

    def take(username: str) -> bool:
        try:
            barrier.wait(timeout=30)
            invitations.register(digest=digest, username=username, password=NEW_PASSWORD)
        except DomainError:
            return False
        finally:
            connection.close()
        return True

    names: Sequence[str] = ("dana", "eve")
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(take, names)) == [False, True]
    assert Membership.objects.filter(team=team).count() == 2
