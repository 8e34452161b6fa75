"""The frame: who sees which entries, what it says when a process is silent, and what it costs."""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from clusters.models import Cluster
from portal.core import clock, heartbeat
from portal.core.models import Heartbeat
from portal.identity.models import User
from tests.portal.gallery import reset

pytestmark = pytest.mark.django_db
BrowserOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _gallery(settings: Settings) -> None:
    templates = deepcopy(settings.TEMPLATES)
    templates[0]["DIRS"] = [*templates[0]["DIRS"], Path(__file__).parent / "templates"]
    settings.TEMPLATES = templates
    settings.ROOT_URLCONF = "tests.portal.gallery"
    reset()


def page(client: Client, path: str = "/jobs/list/") -> str:
    return client.get(path).content.decode()


def beat_all() -> None:
    for process in heartbeat.EXPECTED:
        heartbeat.beat(process)


def test_a_visitor_costs_no_query_and_sees_no_rail(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        html = page(Client())

    assert "m-rail" not in html
    assert "Sign in" in html


def test_the_frame_costs_two_queries_beside_the_person_and_the_teams(
    alice: User, browser_of: BrowserOf, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = browser_of(alice)

    with django_assert_num_queries(5):  # session, person, memberships; heartbeats, clusters
        page(client)


def test_only_administrators_see_what_is_theirs(alice: User, admin: User, browser_of: BrowserOf) -> None:
    assert "/quotas/console/" not in page(browser_of(alice))
    assert "/quotas/console/" in page(browser_of(admin))


def test_the_entry_of_the_page_is_marked_as_current(alice: User, browser_of: BrowserOf) -> None:
    html = page(browser_of(alice))

    assert '<a class="m-nav" href="/jobs/list/" aria-current="page">' in html
    assert html.count("aria-current=") == 1


def test_a_page_says_that_nothing_starts_while_the_worker_is_silent(alice: User, browser_of: BrowserOf) -> None:
    beat_all()
    assert "nothing starts" not in page(browser_of(alice))

    Heartbeat.objects.filter(process="worker").update(seen_at=clock.now() - timedelta(minutes=1))
    assert "The scheduler is not running: nothing starts until it is back." in page(browser_of(alice))


def test_a_silent_watcher_is_told_apart_from_a_silent_worker(alice: User, browser_of: BrowserOf) -> None:
    beat_all()
    Heartbeat.objects.filter(process="watch").delete()
    html = page(browser_of(alice))

    assert "not being watched" in html
    assert "nothing starts" not in html


def test_every_page_says_which_clusters_are_simulated(alice: User, browser_of: BrowserOf) -> None:
    assert "not real" not in page(browser_of(alice))

    Cluster.objects.create(name="sim-east", server="http://127.0.0.1:1", is_simulated=True)
    Cluster.objects.create(name="real-west", server="https://example.com")
    assert "1 of 2 clusters is simulated" in page(browser_of(alice))


@pytest.mark.parametrize(("cookie", "theme"), [("dark", "dark"), ("light", "light"), ('"><b>', "auto"), ("", "auto")])
def test_the_theme_is_set_by_the_server_and_nonsense_is_ignored(
    alice: User, browser_of: BrowserOf, cookie: str, theme: str
) -> None:
    client = browser_of(alice)
    client.cookies["muster_theme"] = cookie

    assert f'data-m-theme="{theme}"' in page(client)


def test_a_browser_without_a_choice_takes_the_persons_own(alice: User, browser_of: BrowserOf) -> None:
    User.objects.filter(pk=alice.pk).update(theme="dark")

    assert 'data-bs-theme="dark"' in page(browser_of(alice))


def test_a_missing_page_keeps_the_frame(alice: User, browser_of: BrowserOf) -> None:
    answer = browser_of(alice).get("/jobs/nothing-here/")

    assert answer.status_code == 404
    assert "m-rail" in answer.content.decode()
    assert "Not found" in answer.content.decode()


def test_a_broken_page_names_the_request_and_says_that_runs_go_on(alice: User, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    client.raise_request_exception = False
    answer = client.get("/broken/")

    assert answer.status_code == 500
    assert "Request id" in answer.content.decode()
    assert "clusters go on" in answer.content.decode()


@pytest.mark.parametrize(("language", "direction"), [("ar", "rtl"), ("en", "ltr")])
def test_the_direction_follows_the_language(alice: User, browser_of: BrowserOf, language: str, direction: str) -> None:
    html = browser_of(alice).get("/jobs/list/", headers={"accept-language": language}).content.decode()

    assert f'dir="{direction}"' in html
    assert ("bootstrap.rtl" in html) == (direction == "rtl")
