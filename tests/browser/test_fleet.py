"""The supply as Chromium draws it: maps, tables and forms, light and dark, wide and narrow, and what changes live."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from clusters.models import Cluster, Node, NodeAccelerator, NodeMinute, TopologyLevel
from portal.core import clock
from portal.identity.models import User
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.factories import make_cluster, make_flavor, make_node

pytestmark = pytest.mark.browser

ADDRESSES = {
    "list": "/clusters/",
    "cluster": "/clusters/north/",
    "node": "/clusters/north/nodes/n1/",
    "fleet": "/fleet/",
    "table": "/fleet/?view=table",
    "register": "/console/clusters/new/",
    "levels": "/console/clusters/north/levels/",
    "flavors": "/console/flavors/",
}


@pytest.fixture
def supply(page: Page, admin: User, sign_in: Callable[[Page, User], None], settings: Settings) -> Page:
    """A cluster of two racks, of every state one GPU at least, seen by an administrator."""
    settings.MUSTER_STALE_AFTER_S = 600.0
    north, flavor = make_cluster("north", kubernetes_version="v1.36.3"), make_flavor("h100")
    TopologyLevel.objects.create(cluster=north, depth=0, name="rack", label_key="t/rack")
    for number in range(1, 11):
        changes = {"is_cordoned": number == 2, "is_ready": number != 3}
        make_node(north, flavor=flavor, name=f"n{number}", labels={"t/rack": f"r{number % 2}"}, **changes)
    NodeAccelerator.objects.filter(node__name="n1").update(held=2, foreign=1, allocatable=7)
    make_cluster("silent", heard_at=None, last_error="connection refused")
    sign_in(page, admin)
    return page


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_of_the_supply_is_clean(supply: Page, live: Live, errors: list[str], theme: str, width: int) -> None:
    supply.set_viewport_size({"width": width, "height": 900})
    supply.context.add_cookies([{"name": "muster_theme", "value": theme, "url": live.url}])
    for address in ADDRESSES.values():
        supply.goto(address)

        expect(supply.locator("html")).to_have_attribute("data-bs-theme", theme)
        assert_axe_clean(supply)
        assert_no_compiled_blue(supply)
        assert_no_sideways_scroll(supply)
    assert errors == []


@pytest.mark.parametrize("address", ["/", "/clusters/north/"])
def test_one_minute_between_gaps_shows_as_one_dot(supply: Page, errors: list[str], address: str) -> None:
    node = Node.objects.get(name="n1")
    figures = {"samples": 4, "gpus": 8, "gpus_held": 2, "utilisation": 20.0, "utilisation_held": 80.0}
    at = clock.now().replace(second=0, microsecond=0) - timedelta(hours=3)
    NodeMinute.objects.create(minute=at, cluster_id=node.cluster_id, node_id=node.pk, **figures)
    supply.goto(address)
    plot = supply.locator("[data-chart].js-plotly-plot")
    plot.scroll_into_view_if_needed()

    expect(plot).to_contain_text("80 %")
    dots = plot.locator(".scatterlayer .points path").evaluate_all(
        "paths => paths.map(path => path.getBBox().width).filter(width => width > 1)"
    )
    assert dots == [6]
    assert errors == []


def test_a_cordon_changes_the_cells_of_its_node_and_nothing_else(supply: Page) -> None:
    supply.goto("/clusters/north/")
    changed, other = (supply.locator(f"#node-{Node.objects.get(name=name).pk}") for name in ("n5", "n7"))
    expect(changed.locator(".m-gpu-free")).to_have_count(8)
    other.evaluate("cell => cell.dataset.kept = 'yes'")
    link = supply.get_by_role("link", name="n5", exact=True)
    pause = supply.get_by_role("button", name="Pause live updates")
    pause.click()
    Node.objects.filter(name="n5").update(is_cordoned=True)
    pause.click()
    link.focus()

    expect(changed.locator(".m-gpu-cordoned")).to_have_count(8)
    expect(link).to_be_focused()
    expect(other).to_have_attribute("data-kept", "yes")


def test_the_map_leads_to_a_node_by_keyboard(supply: Page) -> None:
    supply.goto("/fleet/")
    supply.get_by_role("link", name="n9", exact=True).focus()
    supply.keyboard.press("Enter")

    expect(supply.get_by_role("heading", name="n9")).to_be_visible()
    expect(supply.get_by_text("The GPU exporter is heard")).to_be_visible()


def test_levels_are_added_and_put_in_order_before_they_are_saved(supply: Page) -> None:
    supply.goto("/console/clusters/north/levels/")
    supply.get_by_label("Name of the level").nth(1).fill("block")
    supply.get_by_label("Key of its label").nth(1).fill("t/block")
    supply.get_by_role("button", name="Move up").nth(1).click()
    supply.get_by_role("button", name="Save").click()

    expect(supply.get_by_text("block > rack > node")).to_be_visible()
    levels = Cluster.objects.get(name="north").levels.all()
    assert [(level.name, level.label_key) for level in levels] == [("block", "t/block"), ("rack", "t/rack")]
