"""The page of a cluster's spaces as Chromium draws it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from clusters.models import Cluster
from portal.core import clock
from portal.identity.models import User
from quotas.models import Space, Tenancy
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.factories import make_cluster, make_flavor, make_priority_class, make_queue, make_team

pytestmark = pytest.mark.browser

DENIED = (
    'networkpolicies.networking.k8s.io is forbidden: User "system:serviceaccount:muster-system:muster" cannot create '
    'resource "networkpolicies" in API group "networking.k8s.io" in the namespace "vision"'
)


def seen(kind: str, state: str, *fields: list[str], error: str = "", name: str = "muster") -> dict[str, object]:
    told = {"kind": kind, "name": name, "state": state, "fields": list(fields), "error": error}
    return {**told, "is_recreated": kind == "PriorityClass"}


@pytest.fixture
def cluster(transactional_db: None) -> Cluster:
    """A cluster with a space in every state, and policies that are wanted."""
    cluster = make_cluster("north")
    Tenancy.objects.create(cluster=cluster, guard="deny", checked_at=clock.now())
    make_priority_class("research", 20_000)
    objects = {
        "vision": (
            "drifted",
            [
                seen("ResourceQuota", "altered", ["spec.hard.requests.nvidia.com/gpu", "16", "1k"]),
                seen("NetworkPolicy", "missing", error=DENIED),
            ],
        ),
        "speech": ("in_step", []),
        "platform": ("unknown", [seen("Namespace", "unknown", error=DENIED, name="platform")]),
    }
    for slug, (state, told) in objects.items():
        team = make_team(slug)
        make_queue(team, quota={make_flavor(slug): 8})
        Space.objects.create(cluster=cluster, team=team, state=state, objects_seen=told, since=clock.now())
    rung = seen("PriorityClass", "outdated", ["value", "20000", "10000"], name="research")
    Space.objects.create(cluster=cluster, state="drifted", objects_seen=[rung], since=clock.now())
    return cluster


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_clean_with_its_yaml_open(
    cluster: Cluster,
    page: Page,
    admin: User,
    sign_in: Callable[[Page, User], None],
    live: Live,
    errors: list[str],
    theme: str,
    width: int,
) -> None:
    sign_in(page, admin)
    page.set_viewport_size({"width": width, "height": 900})
    page.context.add_cookies([{"name": "muster_theme", "value": theme, "url": live.url}])
    page.goto("/console/clusters/north/spaces/")

    expect(page.get_by_text("should be 16")).to_be_visible()
    if folder := os.environ.get("MUSTER_LOOK"):
        page.screenshot(path=Path(folder) / f"spaces-{width}-{theme}.png", full_page=True)
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    expect(page.locator("#yaml-guards")).to_contain_text("validationActions")
    assert_axe_clean(page)
    assert_no_compiled_blue(page)
    assert_no_sideways_scroll(page)
    assert errors == []


def test_what_was_asked_for_is_said_beside_the_space(
    cluster: Cluster, page: Page, admin: User, sign_in: Callable[[Page, User], None]
) -> None:
    sign_in(page, admin)
    page.goto("/console/clusters/north/spaces/")
    row = page.locator("tr", has=page.locator(".m-name", has_text="vision"))

    row.get_by_role("button", name="Apply").click()

    expect(page.get_by_text("It is applied within seconds")).to_be_visible()
    expect(row).to_contain_text("is being applied")
