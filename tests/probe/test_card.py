"""Who reads what of the checks, on the page and over REST, and who may ask for them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects
from rest_framework.test import APIClient

from clusters.models import Cluster, Severity
from clusters.services.findings import Finding, write_findings
from portal.core.models import AuditEvent
from portal.identity.models import User
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db
Browser = Callable[[User], Client]
Rest = Callable[[User], APIClient]
LACKING = Finding(
    "rights",
    Severity.PROBLEM,
    {"user": "system:serviceaccount:ops:portal", "missing": [["team-hidden", "batch", "jobs", "create"]]},
)
FINDINGS = [
    Finding("engines", Severity.OK, {"found": []}),
    Finding("policy", Severity.WARNING, {"is": "missing"}),
    Finding("clock", Severity.UNKNOWN, {}),
    LACKING,
]


@pytest.fixture
def north() -> Cluster:
    cluster = make_cluster("north")
    write_findings(cluster=cluster, findings=FINDINGS, is_whole_round=True)
    return cluster


def test_an_administrator_reads_all_with_what_to_apply(browser_of: Browser, admin: User, north: Cluster) -> None:
    page = browser_of(admin).get("/clusters/north/")

    for words in (
        "The account lacks 1 right that the portal needs.",
        "team-hidden: create jobs.batch",
        "account: system:serviceaccount:ops:portal",
        "kind: RoleBinding",
        "MutatingAdmissionPolicyBinding",
        "does not tell its time of day",
        "None is installed.",
        "All of them were made",
        "Check again",
    ):
        assertContains(page, words)
    text = page.content.decode()
    assert text.index("lacks 1 right") < text.index("pins pods") < text.index("time of day") < text.index("None is")


def test_others_read_of_problems_alone_and_of_no_names(browser_of: Browser, north: Cluster) -> None:
    page = browser_of(make_user("loner")).get("/clusters/north/")

    assertContains(page, "The account lacks 1 right that the portal needs.")
    for words in ("team-hidden", "serviceaccount", "RoleBinding", "pins pods", "None is installed", "Check again"):
        assertNotContains(page, words)


def test_others_see_no_card_where_there_is_no_problem(browser_of: Browser, bob: User, admin: User) -> None:
    make_cluster("fresh")

    assertNotContains(browser_of(bob).get("/clusters/fresh/"), "Checks")
    assertContains(browser_of(admin).get("/clusters/fresh/"), "They were not made yet.")


def test_the_live_part_brings_the_checks_too(browser_of: Browser, admin: User, north: Cluster) -> None:
    write_findings(cluster=north, findings=[Finding("policy", Severity.OK, {"is": "in_place"})], is_whole_round=False)

    page = browser_of(admin).get("/clusters/north/", headers={"HX-Request": "true"})

    assertContains(page, "each pod of a gang is born on its node")
    assertContains(page, 'id="checks"')


def test_an_administrator_asks_for_the_checks(browser_of: Browser, admin: User, north: Cluster) -> None:
    answer = browser_of(admin).post("/console/clusters/north/checks/", follow=True)

    assertRedirects(answer, "/clusters/north/")
    assertContains(answer, "The checks are made now")
    assert Cluster.objects.get().probe_asked_at is not None
    event = AuditEvent.objects.get()
    assert (event.action, event.actor, event.object_label) == ("cluster.checks_asked", "admin", "north")


def test_a_disabled_cluster_says_why_it_is_not_checked(browser_of: Browser, admin: User, north: Cluster) -> None:
    Cluster.objects.update(is_enabled=False)
    browser = browser_of(admin)

    assertNotContains(browser.get("/clusters/north/"), "Check again")
    assertContains(browser.post("/console/clusters/north/checks/", follow=True), "A disabled cluster is not checked")


def codes(answer: Any) -> list[str]:
    return [each["code"] for each in answer.json()["checks"]]


def test_a_program_reads_what_its_person_may_read(api_of: Rest, bob: User, admin: User, north: Cluster) -> None:
    seen, all_of_it = (api_of(user).get("/api/v1/clusters/north/probe/") for user in (bob, admin))

    assert codes(seen) == ["rights"]
    assert codes(all_of_it) == ["rights", "policy", "clock", "engines"]
    (line,) = seen.json()["checks"]
    assert (line["severity"], line["sentence"]) == ("problem", "The account lacks 1 right that the portal needs.")
    assert (line["details"], line["advice"], line["yaml"]) == ([], "", "")
    assert "team-hidden" not in seen.content.decode()
    assert "kind: RoleBinding" in all_of_it.json()["checks"][0]["yaml"]
    assert all_of_it.json()["probed_at"] is not None


def test_a_program_asks_for_the_checks(api_of: Rest, bob: User, admin: User, north: Cluster) -> None:
    address = "/api/v1/clusters/north/probe/"

    assert api_of(bob).post(address).status_code == 403
    assert Cluster.objects.get().probe_asked_at is None
    asked = api_of(admin).post(address)
    assert asked.status_code == 202
    assert asked.json()["probe_asked_at"] is not None
    Cluster.objects.update(is_enabled=False)
    refused = api_of(admin).post(address)
    assert (refused.status_code, refused.json()["code"]) == (409, "cluster_disabled")
