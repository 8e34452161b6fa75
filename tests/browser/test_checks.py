"""The card of a cluster's checks as Chromium draws it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from clusters.models import Cluster, Severity
from clusters.services.findings import Finding, write_findings
from portal.identity.models import User
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.factories import make_cluster

pytestmark = pytest.mark.browser

USER = "system:serviceaccount:muster-system:muster"
TIMES = {"create": 12, "open": 8, "pod": 240, "patch": 9, "delete": 11, "gone": 230}
MISSING = [[namespace, "batch", "jobs", verb] for namespace in ("vision", "speech") for verb in ("create", "patch")]
FINDINGS = [
    Finding("rights", Severity.PROBLEM, {"user": USER, "missing": MISSING}),
    Finding("policy", Severity.WARNING, {"is": "missing"}),
    Finding("token", Severity.UNKNOWN, {"is": "opaque"}),
    Finding("version", Severity.OK, {"version": "v1.36.3", "oldest": "1.30", "is_old": False}),
    Finding("canary", Severity.OK, {"is": "ok", "namespace": "vision", "ms": TIMES}),
    Finding("engines", Severity.OK, {"found": []}),
]


@pytest.fixture
def card(page: Page, admin: User, sign_in: Callable[[Page, User], None]) -> Page:
    """A cluster with a finding of every severity, seen by an administrator."""
    write_findings(cluster=make_cluster("north"), findings=FINDINGS, is_whole_round=True)
    sign_in(page, admin)
    return page


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_card_is_clean_with_its_yaml_open(
    card: Page, live: Live, errors: list[str], theme: str, width: int
) -> None:
    card.set_viewport_size({"width": width, "height": 900})
    card.context.add_cookies([{"name": "muster_theme", "value": theme, "url": live.url}])
    card.goto("/clusters/north/")
    for summary in card.get_by_text("YAML to apply").all():
        summary.click()

    expect(card.locator("#yaml-rights")).to_contain_text("kind: RoleBinding")
    expect(card.locator("#yaml-policy")).to_contain_text("kind: MutatingAdmissionPolicyBinding")
    assert_axe_clean(card)
    assert_no_compiled_blue(card)
    assert_no_sideways_scroll(card)
    assert errors == []


def test_a_finding_that_changes_is_drawn_anew_without_asking(card: Page) -> None:
    card.goto("/clusters/north/")
    expect(card.get_by_text("lacks 4 rights")).to_be_visible()

    fixed = Finding("rights", Severity.OK, {"user": USER, "missing": []})
    write_findings(cluster=Cluster.objects.get(), findings=[fixed], is_whole_round=False)

    expect(card.get_by_text("The account has every right that the portal needs.")).to_be_visible()


def test_the_checks_are_asked_for_by_keyboard(card: Page) -> None:
    card.goto("/clusters/north/")

    card.get_by_role("button", name="Check again").press("Enter")

    expect(card.get_by_text("The checks are made now; what they find appears here.")).to_be_visible()
    assert Cluster.objects.get().probe_asked_at is not None
