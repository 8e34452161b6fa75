"""Runs in a real browser: from a template to a page that follows its run, by hand and by keyboard."""

import re
from collections.abc import Callable

import pytest
from django.db import connection
from playwright.sync_api import Page, expect
from pytest_django import Settings

from jobs import transitions
from jobs.models import Job
from jobs.transitions import Event
from portal.env import libpq_dsn
from portal.identity.models import Team, User
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.factories import make_job
from tests.jobs.scenes import Supply, make_placed, make_supply

pytestmark = pytest.mark.browser
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}


@pytest.fixture
def supply(transactional_db: None, team: Team) -> Supply:
    return make_supply(team)


@pytest.fixture
def alices(page: Page, settings: Settings, supply: Supply, alice: User, sign_in: Callable[[Page, User], None]) -> Page:
    """A page that Alice has signed in to."""
    # Nobody watches the cluster here, and a busy machine may take its time.
    settings.MUSTER_STALE_AFTER_S = 3600.0
    # Changes are heard of where the test's rows are.
    settings.DATABASE_DSN = libpq_dsn(connection.settings_dict)
    sign_in(page, alice)
    return page


def test_a_template_becomes_a_run_with_one_click_however_often_it_is_clicked(alices: Page) -> None:
    alices.goto("/train/")
    expect(alices.locator("[data-preview]")).to_contain_text("Would start now in sim-east")
    alices.get_by_label("Name", exact=True).fill("vit")
    alices.get_by_role("button", name="Start run").dblclick()

    expect(alices.get_by_role("heading", level=1)).to_have_text("vit-1")
    expect(alices.locator("#head-state")).to_contain_text("Queued")
    assert Job.objects.count() == 1


def test_form_and_yaml_are_two_tabs_of_one_document(alices: Page) -> None:
    alices.goto("/train/?template=pytorch-distributed")
    alices.get_by_label("Name", exact=True).fill("vit")
    alices.get_by_role("tab", name="YAML").click()
    text = alices.locator("#yaml")
    expect(text).to_have_value(re.compile("name: vit"))
    text.fill(
        text.input_value().replace("workers: 2", "workers: 4") + "tolerations:\n- key: spot\n  operator: Exists\n"
    )
    alices.get_by_role("tab", name="Form").click()
    expect(alices.get_by_label("Workers", exact=True)).to_have_value("4")
    alices.get_by_role("tab", name="YAML").click()
    expect(text).to_have_value(re.compile("key: spot"))

    text.fill("name: [")
    alices.get_by_role("tab", name="Form").click()
    expect(alices.locator("[data-spec-error]")).to_contain_text("line")
    expect(text).to_have_value("name: [")


def test_a_mistake_is_said_on_top_and_leads_to_its_field(alices: Page) -> None:
    alices.goto("/train/")
    alices.get_by_label("Name", exact=True).fill("Not A Name")
    alices.get_by_role("button", name="Start run").click()

    expect(alices.locator("[data-errors]")).to_be_focused()
    alices.get_by_role("link", name="Name").click()
    expect(alices.get_by_label("Name", exact=True)).to_be_focused()
    expect(alices.get_by_label("Name", exact=True)).to_have_value("Not A Name")


def test_a_page_follows_its_run_and_moves_nothing_else(alices: Page, team: Team, alice: User, supply: Supply) -> None:
    job = make_job(team, alice, queue=supply.queue)
    alices.goto(f"/jobs/{job.uid}/")
    alices.locator("#find").fill("half a wo")
    alices.evaluate("document.querySelector('.m-facts').dataset.same = 'yes'")

    transitions.move(job, frm=Job.State.QUEUED, to=Job.State.CANCELLED, event=Event("cancelled"))

    expect(alices.locator("#head-state")).to_contain_text("Cancelled")
    expect(alices.locator("#find")).to_have_value("half a wo")
    expect(alices.locator(".m-facts")).to_have_attribute("data-same", "yes")


def test_rows_are_selected_by_keyboard_and_cancelled_after_a_question(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    job = make_job(team, alice, queue=supply.queue)
    alices.goto("/jobs/")
    alices.keyboard.press("j")
    alices.keyboard.press("x")
    bar = alices.locator("[data-action-bar]")
    expect(bar).to_contain_text("1 selected")
    bar.get_by_role("button", name="Cancel").click()
    alices.get_by_role("dialog").get_by_role("button", name="Cancel jobs").click()

    expect(alices.get_by_text("Cancel asked for 1 job.")).to_be_visible()
    job.refresh_from_db()
    assert job.state == Job.State.CANCELLED


def test_a_list_is_narrowed_to_a_flavor_and_taken_home_as_csv(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    job = make_placed(team, alice, supply, name="placed")
    make_job(team, alice, queue=supply.queue, name="waits")
    alices.goto("/jobs/")
    alices.get_by_role("button", name="Flavor: any").click()
    alices.get_by_role("link", name="h100", exact=True).click()
    expect(alices.locator("#rows tr")).to_have_count(1)
    with alices.expect_download() as started:
        alices.get_by_role("link", name="CSV").click()

    file = started.value
    assert re.fullmatch(r"jobs-\d{4}-\d\d-\d\d\.csv", file.suggested_filename)
    heading, row = file.path().read_text().splitlines()
    assert heading.startswith("id,name,kind,state,")
    assert row.startswith(f"{job.uid},placed-")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_of_jobs_is_clean(
    alices: Page, errors: list[str], team: Team, alice: User, supply: Supply, live: Live, theme: str, size: str
) -> None:
    running, failed = (
        make_placed(team, alice, supply, name="a-long-name-that-somebody-chose-with-care"),
        make_placed(team, alice, supply, state="failed", outcome_code="oom", outcome_rank=1, exit_code=137),
    )
    alices.set_viewport_size({"width": SIZES[size][0], "height": SIZES[size][1]})
    alices.context.add_cookies([{"name": "muster_theme", "value": theme, "url": live.url}])
    tabs = [f"/jobs/{running.uid}/?tab={tab}" for tab in ("overview", "charts", "ranks", "events", "yaml")]
    for address in ("/", "/jobs/", "/services/", "/train/", "/serve/", f"/jobs/{failed.uid}/", *tabs):
        alices.goto(address)
        expect(alices.locator("html")).to_have_attribute("data-bs-theme", theme)
        assert_axe_clean(alices)
        assert_no_compiled_blue(alices)
        assert_no_sideways_scroll(alices)
    assert errors == []
