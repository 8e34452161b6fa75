"""What a request knows about its person: teams, roles, token."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.decorators import api_view
from rest_framework.response import Response
from rest_framework.test import APIClient

from portal.core import clock
from portal.core.models import AuditEvent
from portal.core.rest.request import ApiRequest
from portal.identity.actors import actor_of
from portal.identity.middleware import CHOSEN_TEAM, CurrentTeamMiddleware
from portal.identity.models import ApiToken, Team, User
from portal.identity.permissions import can_manage_members, can_submit, can_view_team, role_in
from tests.factories import make_membership

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


@api_view(["GET", "POST"])  # type: ignore[arg-type]  # it is the same request, better known
def who(request: ApiRequest) -> Response:
    actor = actor_of(request)
    return Response({"name": actor.name, "token": actor.token_id, "team": request.team and request.team.slug})


async def patient(_request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0)
    return HttpResponse("patient")


urlpatterns = [path("who/", who), path("patient/", patient)]


def through_middleware(user: User | AnonymousUser, **session: object) -> Any:
    request: Any = RequestFactory().get("/")
    request.user, request.session = user, session
    CurrentTeamMiddleware(lambda _request: HttpResponse())(request)
    return request


def test_a_request_knows_teams_and_roles_with_one_query(
    alice: User, team: Team, other_team: Team, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_membership(alice, other_team, "viewer")
    request = through_middleware(alice, **{CHOSEN_TEAM: team.pk})

    with django_assert_num_queries(1):
        assert request.teams == [other_team, team]
        assert request.roles == {team.pk: "owner", other_team.pk: "viewer"}
        assert request.team == team


def test_nothing_is_read_before_it_is_asked_for(alice: User, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        through_middleware(alice)


def test_a_chosen_team_that_was_left_falls_back_to_the_first(alice: User, team: Team, other_team: Team) -> None:
    assert through_middleware(alice, **{CHOSEN_TEAM: other_team.pk}).team == team


def test_a_visitor_has_no_team() -> None:
    request = through_middleware(AnonymousUser())
    assert (request.team, request.teams, request.roles) == (None, [], {})


def test_a_person_without_teams_has_none(admin: User) -> None:
    assert through_middleware(admin).team is None


async def _get_patient() -> Any:
    return await AsyncClient().get("/patient/")


def test_the_middleware_serves_async_views() -> None:
    assert asyncio.run(_get_patient()).content == b"patient"


def test_a_token_names_its_person_and_team(api_of: Callable[[User], APIClient], alice: User) -> None:
    client = api_of(alice)
    token = ApiToken.objects.get()
    assert client.get("/who/").json() == {"name": "alice", "token": token.token_key, "team": "vision"}


def test_the_word_token_is_accepted_as_well(client: Client, alice: User) -> None:
    _row, secret = ApiToken.objects.create(alice, name="old habits")
    assert client.get("/who/", headers={"Authorization": f"Token {secret}"}).status_code == 200


def test_a_session_is_accepted_with_its_csrf_token_alone(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert browser.get("/who/").json()["name"] == "alice"
    assert browser.post("/who/").status_code == 403


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer muster_nope",
        "Bearer a b",
        "Token x",
        "Bearer \xff\xfe",
        "Basic YTpi",
        "Bearer " + "m" * 9000,
    ],
)
def test_nobody_in_particular_is_a_401(client: Client, alice: User, header: str) -> None:
    response = client.get("/who/", headers={"Authorization": header})
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "change",
    [
        {"expiry": timezone.now() - timedelta(seconds=1)},
        {"revoked_at": timezone.now()},
    ],
)
def test_an_expired_or_revoked_token_is_refused_and_kept(
    api_of: Callable[[User], APIClient], alice: User, change: dict[str, object]
) -> None:
    client = api_of(alice)
    ApiToken.objects.update(**change)
    assert client.get("/who/").status_code == 401
    assert ApiToken.objects.count() == 1


def test_the_token_of_an_inactive_person_is_refused(api_of: Callable[[User], APIClient], alice: User) -> None:
    client = api_of(alice)
    User.objects.update(is_active=False)
    assert client.get("/who/").status_code == 401


def test_the_last_use_is_written_once_a_minute(
    api_of: Callable[[User], APIClient], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, client = timezone.now(), api_of(alice)
    seen = []
    for seconds in (0, 30, 59, 61):
        moment = start + timedelta(seconds=seconds)
        monkeypatch.setattr(clock, "now", lambda moment=moment: moment)
        client.get("/who/")
        seen.append(ApiToken.objects.get().last_used_at)
    assert seen == [start, start, start, start + timedelta(seconds=61)]


def test_no_digest_leads_back_to_a_token(alice: User) -> None:
    row, secret = ApiToken.objects.create(alice, name="one")
    assert secret.startswith("muster_")
    assert len(secret) == len("muster_") + 64
    assert secret not in (row.digest, row.token_key)


def test_roles_open_what_they_should(
    alice: User, bob: User, victor: User, charlie: User, admin: User, team: Team
) -> None:
    people = (alice, bob, victor, charlie, admin)
    assert [role_in(person, team) for person in people] == ["owner", "member", "viewer", None, None]
    assert [can_view_team(person, team) for person in people] == [True, True, True, False, True]
    assert [can_submit(person, team) for person in people] == [True, True, False, False, False]
    assert [can_manage_members(person, team) for person in people] == [True, False, False, False, True]
    assert not AuditEvent.objects.exists()
