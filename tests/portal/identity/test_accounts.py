"""Profiles, and what administrators do with accounts."""

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
from portal.identity.models import User
from portal.identity.services import people
from tests.factories import make_user
from tests.portal.identity import api_urls

pytestmark = [pytest.mark.django_db, pytest.mark.urls(api_urls.__name__)]
PROFILE = {"first_name": "Alice", "last_name": "", "theme": "dark", "time_zone": "Asia/Amman"}


def test_a_person_changes_the_profile(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    assert browser.post("/people/profile/", PROFILE).status_code == 302

    alice.refresh_from_db()
    assert (alice.first_name, alice.theme, alice.time_zone) == ("Alice", "dark", "Asia/Amman")
    assert browser.cookies["muster_theme"].value == "dark"
    event = AuditEvent.objects.get()
    assert event.before == {"first_name": "", "theme": "auto", "time_zone": "UTC"}


def test_what_stays_the_same_is_not_written_down(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    for _ in range(2):
        browser.post("/people/profile/", PROFILE)
    assert AuditEvent.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [{"theme": "pink"}, {"time_zone": "Mars/Olympus"}, {"time_zone": "../../etc/passwd"}, {"first_name": "x" * 151}],
)
def test_a_wrong_profile_is_refused(browser_of: Callable[[User], Client], alice: User, wrong: dict[str, str]) -> None:
    assert browser_of(alice).post("/people/profile/", PROFILE | wrong).status_code == 422
    alice.refresh_from_db()
    assert alice.theme == "auto"


def test_a_profile_cannot_make_an_administrator(browser_of: Callable[[User], Client], alice: User) -> None:
    browser_of(alice).post("/people/profile/", PROFILE | {"is_superuser": "on", "email": "x@example.com"})
    alice.refresh_from_db()
    assert (alice.is_superuser, alice.email) == (False, "alice@example.com")


def test_the_theme_switch_keeps_the_choice(browser_of: Callable[[User], Client], alice: User) -> None:
    browser = browser_of(alice)
    assert browser.post("/people/theme/", {"theme": "light"}).status_code == 204
    assert browser.post("/people/theme/", {"theme": "pink"}).status_code == 422
    alice.refresh_from_db()
    assert alice.theme == "light"


def test_a_closed_account_is_out_at_once(
    browser_of: Callable[[User], Client], api_of: Callable[[User], APIClient], admin: User, bob: User
) -> None:
    session, client = browser_of(bob), api_of(bob)
    browser_of(admin).post(f"/people/{bob.pk}/active/")

    assert session.get("/people/tokens/").status_code == 302
    assert client.get("/api/v1/teams/").status_code == 401
    browser_of(admin).post(f"/people/{bob.pk}/active/", {"on": "on"})
    assert client.get("/api/v1/teams/").status_code == 200
    assert [event.after for event in AuditEvent.objects.order_by("id")] == [{"is_active": False}, {"is_active": True}]


def test_an_administrator_makes_another_and_may_then_step_down(
    browser_of: Callable[[User], Client], admin: User, bob: User
) -> None:
    browser = browser_of(admin)
    browser.post(f"/people/{bob.pk}/administrator/", {"on": "on"})
    browser.post(f"/people/{admin.pk}/administrator/")
    assert User.objects.get(is_superuser=True) == bob
    assert browser.get("/people/").status_code == 403


def test_the_last_administrator_stays(browser_of: Callable[[User], Client], admin: User) -> None:
    make_user(is_superuser=True, is_active=False)
    browser = browser_of(admin)
    for act in ("active", "administrator"):
        page = browser.post(f"/people/{admin.pk}/{act}/", follow=True)
        assert "last administrator" in page.content.decode()
    admin.refresh_from_db()
    assert admin.is_platform_admin
    assert not AuditEvent.objects.exists()


def test_only_administrators_reach_accounts(browser_of: Callable[[User], Client], alice: User, bob: User) -> None:
    browser = browser_of(alice)
    assert browser.get("/people/").status_code == 403
    assert browser.post(f"/people/{alice.pk}/administrator/", {"on": "on"}).status_code == 403
    assert browser.post(f"/people/{bob.pk}/active/").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_remove_each_other_leave_one() -> None:
    admins = [make_user(is_superuser=True) for _ in range(2)]
    barrier = Barrier(2)

    def remove(at: int) -> str:
        try:
            barrier.wait(timeout=30)
            people.set_administrator(actor=as_actor(admins[1 - at]), person=admins[at], administrator=False)
        except DomainError as refused:
            return refused.code
        finally:
            connection.close()
        return "removed"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, range(2))) == ["last_administrator", "removed"]


def test_the_list_of_people_is_found_by_text_and_walked_by_key(
    browser_of: Callable[[User], Client], admin: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(60):
        make_user(f"worker{number:02}")
    browser = browser_of(admin)
    with django_assert_max_num_queries(10):
        first = browser.get("/people/?q=worker")
    second = browser.get("/people/" + first.context["pager"]["older_url"])

    seen = [person.username for page in (first, second) for person in page.context["page"].rows]
    assert seen == [f"worker{number:02}" for number in range(60)]
    assert browser.get("/people/?q=%00&cursor=").status_code == 200
    assert browser.get("/people/?cursor=nonsense").status_code == 400
