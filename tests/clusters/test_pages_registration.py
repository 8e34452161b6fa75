"""How administrators register clusters, set their levels and define flavors in the browser."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from clusters.models import Cluster, ResourceFlavor
from portal.identity.models import User
from tests.clusters.test_rest_supply import KUBECONFIG, SECRET
from tests.factories import make_cluster, make_flavor, make_node

pytestmark = pytest.mark.django_db
Browser = Callable[[User], Client]
NEW = {
    "name": "west",
    "kubeconfig": KUBECONFIG,
    "exporter_url": "http://{address}:9400/metrics",
    "level_name": ["block", " rack ", ""],
    "level_key": ["t/block", "t/rack", ""],
}


def test_a_cluster_is_registered_with_its_levels(browser_of: Browser, admin: User) -> None:
    answer = browser_of(admin).post("/console/clusters/new/", NEW, follow=True)

    assertRedirects(answer, "/clusters/west/")
    cluster = Cluster.objects.get()
    assert (cluster.server, cluster.token) == ("https://203.0.113.7:6443", SECRET)
    assert [(level.name, level.label_key) for level in cluster.levels.all()] == [
        ("block", "t/block"),
        ("rack", "t/rack"),
    ]
    assertContains(answer, "no word from west yet")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"kubeconfig": KUBECONFIG.replace(f"token: {SECRET}", f"token: {SECRET}, exec: {{command: sh}}")},
            "user.exec",
        ),
        ({"kubeconfig": KUBECONFIG + ":"}, "not valid YAML"),
        ({"name": "West Coast"}, "lower-case letters"),
        ({"exporter_url": "http://{pod}:9400"}, "Only {node} and {address} are filled in."),
        ({"level_name": ["rack", "rack"], "level_key": ["a/b", "c/d"]}, "a name and a label of its own"),
        ({"level_name": ["rack"], "level_key": [""]}, "is not the key of a label"),
    ],
)
def test_a_refusal_says_why_and_never_shows_the_token_again(
    browser_of: Browser, admin: User, change: dict[str, object], words: str
) -> None:
    page = browser_of(admin).post("/console/clusters/new/", {**NEW, **change})

    assertContains(page, words, status_code=422)
    assertNotContains(page, SECRET, status_code=422)
    assertNotContains(page, "203.0.113.7", status_code=422)
    assertContains(page, 'value="http://{', status_code=422)  # what is no secret is not lost
    assert not Cluster.objects.exists()


def test_the_way_to_a_cluster_is_changed_without_showing_it(browser_of: Browser, admin: User) -> None:
    cluster = make_cluster("west", token="before")
    browser = browser_of(admin)
    assertNotContains(browser.get("/console/clusters/west/edit/"), "before")

    kept = {"version": "1", "kubeconfig": "", "exporter_url": "", "is_enabled": "on"}
    assertRedirects(browser.post("/console/clusters/west/edit/", kept), "/clusters/west/")
    cluster.refresh_from_db()
    assert (cluster.token, cluster.version) == ("before", 2)
    browser.post("/console/clusters/west/edit/", {**kept, "version": "2", "kubeconfig": KUBECONFIG, "is_enabled": ""})
    cluster.refresh_from_db()
    assert (cluster.token, cluster.is_enabled) == (SECRET, False)
    stale = browser.post("/console/clusters/west/edit/", {**kept, "kubeconfig": KUBECONFIG})
    assertContains(stale, "Show what is stored now, version 3", status_code=409)
    assertNotContains(stale, SECRET, status_code=409)


def test_a_stale_edit_of_the_levels_shows_both(browser_of: Browser, admin: User) -> None:
    make_cluster("west").levels.create(depth=0, name="zone", label_key="t/zone")
    browser, mine = browser_of(admin), {"version": "1", "level_name": ["rack"], "level_key": ["t/rack"]}
    browser.post("/console/clusters/west/levels/", {"version": "1", "level_name": ["block"], "level_key": ["t/block"]})

    page = browser.post("/console/clusters/west/levels/", mine)

    assertContains(page, 'value="t/rack"', status_code=409)
    assertContains(page, "t/block", status_code=409)
    assertContains(page, 'name="version" value="2"', status_code=409)
    assertRedirects(browser.post("/console/clusters/west/levels/", {**mine, "version": "2"}), "/clusters/west/")
    assert [level.name for level in Cluster.objects.get().levels.all()] == ["rack"]


def test_flavors_are_added_changed_and_removed(browser_of: Browser, admin: User) -> None:
    browser = browser_of(admin)
    values = {
        "name": "mi300x", "title": "MI300X", "resource_name": "amd.com/gpu", "label_key": "amd.com/gpu.product",
        "label_value": "MI300X", "memory_mib": "196608", "link": "", "rank": "20",
    }  # fmt: skip

    assertRedirects(browser.post("/console/flavors/", values), "/console/flavors/")
    flavor = ResourceFlavor.objects.get()
    refused = browser.post("/console/flavors/", values)
    assertContains(refused, "already exists", status_code=422)
    assertContains(browser.get(f"/console/flavors/{flavor.pk}/"), "amd.com/gpu.product")
    bad = browser.post(f"/console/flavors/{flavor.pk}/", {**values, "label_key": "no key"})
    assertContains(bad, "Use a name such as vendor.example/gpu.", status_code=422)
    browser.post(f"/console/flavors/{flavor.pk}/", {**values, "rank": "5"})
    flavor.refresh_from_db()
    assert flavor.rank == 5
    browser.post(f"/console/flavors/{flavor.pk}/remove/")
    assert not ResourceFlavor.objects.exists()


def test_a_flavor_in_use_stays(browser_of: Browser, admin: User) -> None:
    flavor = make_flavor("h100")
    make_node(make_cluster("west"), flavor=flavor)

    page = browser_of(admin).post(f"/console/flavors/{flavor.pk}/remove/", follow=True)

    assertContains(page, "h100 is in use by 1 nodes, quotas or jobs.")
    assert ResourceFlavor.objects.exists()
