"""Incidents, and a node in trouble, as Chromium draws them."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from clusters.models import Node, NodeFault, NodeMaintenance
from jobs.models import Attempt, Incident
from portal.core import clock
from portal.identity.models import Team, User
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.jobs.scenes import make_placed, make_supply

pytestmark = pytest.mark.browser


@pytest.fixture
def trouble(page: Page, admin: User, alice: User, team: Team, sign_in: Callable[[Page, User], None]) -> Page:
    """A run that node n0 failed, a node in quarantine, and one that waits for its maintenance."""
    supply, now = make_supply(team), clock.now()
    job = make_placed(team, alice, supply, name="llm-pretrain-70b-with-a-long-name")
    n0, n1, n2 = Node.objects.order_by("name")[:3]
    fault = NodeFault.objects.create(
        node=n0,
        kind="condition",
        subject="SysLogsXIDError",
        detail={"reason": "XID", "message": "XID 79: GPU has fallen off the bus"},
        detected_at=now,
        acts_at=now,
    )
    Node.objects.filter(pk=n0.pk).update(is_faulty=True)
    Node.objects.filter(pk=n2.pk).update(quarantined_at=now, quarantined_by="admin", quarantine_reason="two fans stand")
    NodeMaintenance.objects.create(node=n1, asked_by="admin", asked_at=now, deadline_at=now)
    Node.objects.filter(pk=n1.pk).update(maintenance_at=now)
    Incident.objects.create(
        attempt=Attempt.objects.get(job=job),
        node=n0,
        fault=fault,
        kind="condition",
        message="node n0 reports SysLogsXIDError",
        detected_at=now,
        opened_at=now,
        gpus=16,
        lost_since=now,
        lost_gpu_s=57_600,
    )
    sign_in(page, admin)
    return page


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_incidents_and_nodes_in_trouble_are_drawn_clean(
    trouble: Page, live: Live, errors: list[str], theme: str, width: int
) -> None:
    trouble.set_viewport_size({"width": width, "height": 900})
    trouble.context.add_cookies([{"name": "muster_theme", "value": theme, "url": live.url}])
    for address, text in {
        "/incidents/": "node n0 reports SysLogsXIDError",
        "/clusters/sim-east/": "quarantined by admin: two fans stand",
        "/clusters/sim-east/nodes/n0/": "XID 79: GPU has fallen off the bus",
        "/clusters/sim-east/nodes/n1/": "is stopped whole, all 16 GPUs, and queues again elsewhere",
    }.items():
        trouble.goto(address)
        expect(trouble.get_by_text(text).first).to_be_visible()
        assert_axe_clean(trouble)
        assert_no_compiled_blue(trouble)
        assert_no_sideways_scroll(trouble)
    assert errors == []


def test_a_node_is_taken_for_maintenance_and_opened_again_by_keyboard(trouble: Page) -> None:
    trouble.goto("/clusters/sim-east/nodes/n3/")
    trouble.get_by_role("button", name="Maintenance").press("Enter")
    dialog = trouble.get_by_role("dialog")
    expect(dialog).to_contain_text("No run of Muster is on it.")
    assert_axe_clean(trouble)
    trouble.get_by_label("Minutes until its runs are stopped").fill("30")
    dialog.get_by_label("Why").fill("new firmware")
    dialog.get_by_role("button", name="Empty the node").press("Enter")

    expect(trouble.get_by_text("In maintenance").first).to_be_visible()
    expect(trouble.get_by_text("new firmware").first).to_be_visible()
    trouble.get_by_role("button", name="Cancel the maintenance").press("Enter")

    expect(trouble.get_by_text("The node is open again.")).to_be_visible()
    assert not Node.objects.get(name="n3").is_closed


def test_a_quarantine_asks_why(trouble: Page) -> None:
    trouble.goto("/clusters/sim-east/nodes/n3/")
    trouble.get_by_role("button", name="Quarantine").click()
    dialog = trouble.get_by_role("dialog")
    dialog.get_by_label("Why").fill("ECC errors")
    dialog.get_by_role("button", name="Quarantine").click()

    expect(trouble.get_by_text("Quarantined").first).to_be_visible()
    expect(trouble.get_by_text("admin - ECC errors")).to_be_visible()
