"""Teams and who is in them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from portal.core.errors import DomainError
from portal.core.models import AuditEvent
from portal.identity.actors import as_actor
from portal.identity.models import Membership, Organization, Team, User
from portal.identity.services import members
from tests.factories import make_membership, make_organization, make_team, make_user
from tests.portal.identity import api_urls

pytestmark = [pytest.mark.django_db, pytest.mark.urls(api_urls.__name__)]
PAGE = "/people/teams/vision/"


def role_of(user: User) -> str | None:
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def test_a_list_shows_the_own_teams_with_all_their_members(
    browser_of: Callable[[User], Client], alice: User, bob: User, charlie: User
) -> None:
    listed = browser_of(alice).get("/people/teams/").context["teams"]
    assert [(team.slug, team.size) for team in listed] == [("vision", 2)]


def test_an_administrator_sees_every_team(
    browser_of: Callable[[User], Client], admin: User, team: Team, other_team: Team
) -> None:
    assert list(browser_of(admin).get("/people/teams/").context["teams"]) == [other_team, team]


def test_a_stranger_finds_no_team(browser_of: Callable[[User], Client], charlie: User, team: Team) -> None:
    browser = browser_of(charlie)
    assert browser.get(PAGE).status_code == browser.get("/people/teams/none/").status_code == 404


def test_invitations_are_shown_to_those_who_manage(
    browser_of: Callable[[User], Client], alice: User, bob: User, admin: User
) -> None:
    assert browser_of(bob).get(PAGE).context["invitations"] is None
    for person in (alice, admin):
        assert browser_of(person).get(PAGE).context["invitations"] is not None


def test_an_owner_changes_roles(browser_of: Callable[[User], Client], alice: User, bob: User) -> None:
    browser_of(alice).post(f"{PAGE}members/{bob.pk}/role/", {"role": "viewer"})
    assert role_of(bob) == "viewer"
    event = AuditEvent.objects.get()
    assert (event.action, event.before, event.after) == ("member.role_changed", {"role": "member"}, {"role": "viewer"})


@pytest.mark.parametrize("role", ["", "king", "OWNER", "o" * 100_000])
def test_an_unknown_role_changes_nothing(
    browser_of: Callable[[User], Client], alice: User, bob: User, role: str
) -> None:
    response = browser_of(alice).post(f"{PAGE}members/{bob.pk}/role/", {"role": role}, follow=True)
    assert "Choose owner, member or viewer." in response.content.decode()
    assert role_of(bob) == "member"


def test_a_member_manages_nobody(browser_of: Callable[[User], Client], alice: User, bob: User) -> None:
    browser = browser_of(bob)
    assert browser.post(f"{PAGE}members/{alice.pk}/role/", {"role": "viewer"}).status_code == 403
    assert browser.post(f"{PAGE}members/{alice.pk}/remove/").status_code == 403
    assert browser.post(f"{PAGE}invite/", {"email": "a@example.com", "role": "owner"}).status_code == 403
    assert role_of(alice) == "owner"


def test_a_member_may_leave(browser_of: Callable[[User], Client], bob: User) -> None:
    assert browser_of(bob).post(f"{PAGE}members/{bob.pk}/remove/").headers["Location"] == "/people/teams/"
    assert role_of(bob) is None


def test_the_last_owner_neither_leaves_nor_steps_down(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    for address, data in (
        (f"{PAGE}members/{alice.pk}/remove/", {}),
        (f"{PAGE}members/{alice.pk}/role/", {"role": "member"}),
    ):
        browser.post(address, data)
        assert role_of(alice) == "owner"
    assert not AuditEvent.objects.exists()


def test_an_owner_with_another_owner_may_leave(alice: User, team: Team) -> None:
    make_membership(make_user(), team, "owner")
    members.remove_member(actor=as_actor(alice), membership=Membership.objects.get(user=alice))
    assert role_of(alice) is None


def test_a_member_of_another_team_is_missing(browser_of: Callable[[User], Client], alice: User, charlie: User) -> None:
    browser = browser_of(alice)
    for user_id in (charlie.pk, 10**30):
        assert browser.post(f"{PAGE}members/{user_id}/remove/").status_code == 404


def test_a_member_who_left_meanwhile_is_told(alice: User, bob: User) -> None:
    membership = Membership.objects.get(user=bob)
    Membership.objects.filter(pk=membership.pk).delete()
    with pytest.raises(DomainError, match="has left"):
        members.change_role(actor=as_actor(alice), membership=membership, role="viewer")


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_leave_one() -> None:
    team = make_team()
    rows = [make_membership(make_user(), team, "owner") for _ in range(2)]
    barrier = Barrier(2)

    def remove(at: int) -> str:
        try:
            barrier.wait(timeout=30)
            members.remove_member(actor=as_actor(rows[1 - at].user), membership=rows[at])
        except DomainError as refused:
            return refused.code
        finally:
            connection.close()
        return "removed"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, range(2))) == ["last_owner", "removed"]
    assert Membership.objects.count() == 1


def test_an_administrator_makes_organizations_and_teams(browser_of: Callable[[User], Client], admin: User) -> None:
    browser = browser_of(admin)
    browser.post("/people/organizations/new/", {"name": "Umbrella", "slug": "umbrella"})
    organization = Organization.objects.get()
    made = browser.post("/people/teams/new/", {"organization": organization.pk, "name": "Robots", "slug": "robots"})

    assert made.headers["Location"] == "/people/teams/robots/"
    assert Team.objects.get().namespace == "robots"
    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == [
        "organization.created",
        "team.created",
    ]


@pytest.mark.parametrize(
    "slug", ["", "Vision", "vision", "kube-system", "default", "new", "-a", "a" * 41, "a_b", "a\x00"]
)
def test_a_wrong_slug_makes_no_team(browser_of: Callable[[User], Client], admin: User, team: Team, slug: str) -> None:
    form = {"organization": make_organization().pk, "name": "Other", "slug": slug}
    assert browser_of(admin).post("/people/teams/new/", form).status_code == 422
    assert Team.objects.count() == 1


def test_rest_lists_the_own_teams_and_their_members(
    api_of: Callable[[User], APIClient], alice: User, bob: User, other_team: Team
) -> None:
    client = api_of(alice)
    listed = client.get("/api/v1/teams/").json()["results"]
    people = client.get("/api/v1/teams/vision/members/").json()["results"]

    assert [(team["slug"], team["role"]) for team in listed] == [("vision", "owner")]
    assert [(person["username"], person["role"]) for person in people] == [("alice", "owner"), ("bob", "member")]
    foreign, missing = (client.get(f"/api/v1/teams/{slug}/members/") for slug in ("speech", "none"))
    assert foreign.status_code == 404
    assert foreign.content == missing.content


@pytest.mark.parametrize("address", ["/people/teams/", PAGE])
def test_pages_cost_the_same_for_many_members(
    browser_of: Callable[[User], Client],
    alice: User,
    team: Team,
    address: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(20):
        make_membership(make_user(), team)
    browser = browser_of(alice)
    with django_assert_max_num_queries(10):
        browser.get(address)
