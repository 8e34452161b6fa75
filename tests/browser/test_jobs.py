"""Runs in a real browser: from a template to a page that follows its run, by hand and by keyboard."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from playwright.sync_api import Page, expect
from pytest_django import Settings

from jobs import transitions
from jobs.engine import cycle
from jobs.models import Job
from jobs.services import control
from jobs.transitions import Event
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.env import libpq_dsn
from portal.identity.models import Team, User
from quotas.models import Quota, QuotaUsage
from tests.browser.conftest import Live
from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll
from tests.factories import make_job
from tests.jobs.scenes import SPEC, Supply, make_placed, make_supply, place

pytestmark = pytest.mark.browser
ADMITTED = Event("admitted", {"cycle": 1, "workers": 2, "cluster": "sim-east", "level": "rack"})
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


def test_a_quick_run_is_one_choice_away_and_shows_its_pod(alices: Page) -> None:
    alices.goto("/")
    alices.get_by_role("button", name="New run").first.click()
    alices.get_by_role("link", name="Quick run").click()
    alices.locator("summary", has_text="Object, hardware and runtime").click()
    expect(alices.get_by_label("On the cluster")).to_have_value("pod")
    alices.get_by_label("Runtime class").fill("kata")

    expect(alices.locator("[data-preview]")).to_contain_text("kind: Pod")
    expect(alices.locator("[data-preview]")).to_contain_text("runtimeClassName: kata")
    for width, height in SIZES.values():
        alices.set_viewport_size({"width": width, "height": height})
        assert_no_sideways_scroll(alices)
        assert_axe_clean(alices)


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


def test_the_page_of_a_waiting_run_says_a_new_reason_as_soon_as_a_cycle_finds_it(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    job = make_job(team, alice, queue=supply.queue, workers=4, gpus_per_worker=8, flavor_ids=[supply.flavor.pk])
    make_placed(team, alice, supply)
    QuotaUsage.objects.create(queue=supply.queue, flavor=supply.flavor, used=16)
    cycle.run_once()
    alices.goto(f"/jobs/{job.uid}/")
    answer = alices.locator("#answer")
    expect(answer).to_contain_text("16 of 32")
    expect(alices.locator("[data-live-pill]")).to_have_text(re.compile(r"Live, \d s"))

    Quota.objects.update(nominal=24)
    cycle.run_once()

    # Sooner than a page asks by itself, which is after twenty seconds.
    expect(answer).to_contain_text("at most 24", timeout=10_000)
    expect(alices.locator("#fact-queue")).to_contain_text("16 of 24", timeout=10_000)


def test_all_that_a_place_changes_on_the_page_of_a_service_comes_without_a_reload(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    spec = {"name": "llm", "kind": "inference", "image": "team/vllm:1", "replicas": 2, "service_port": 8080}
    job = make_job(team, alice, queue=supply.queue, kind="inference", workers=2, gpus_per_worker=8, spec=spec)
    alices.goto(f"/jobs/{job.uid}/")
    expect(alices.locator("#fact-asked")).to_contain_text("2 x 8 GPU")
    expect(alices.locator("#head-simulated")).to_be_empty()

    place(job, supply)
    transitions.move(job, frm=Job.State.QUEUED, to=Job.State.ADMITTED, event=ADMITTED)

    expect(alices.locator("#fact-asked")).to_contain_text("2 x 8 h100")
    expect(alices.locator("#head-simulated")).to_have_text("simulated")
    expect(alices.locator("#what-it-runs")).to_contain_text(f"m-{job.uid}-a1.{team.namespace}.svc:8080")


@pytest.mark.parametrize(("tab", "shown"), [("ranks", "#ranks"), ("logs", "#log"), ("yaml", "#objects-yaml")])
def test_a_tab_that_was_empty_fills_when_the_run_gets_its_place(
    alices: Page, team: Team, alice: User, supply: Supply, tab: str, shown: str
) -> None:
    job = make_job(team, alice, queue=supply.queue, workers=2, gpus_per_worker=8, spec=SPEC)
    alices.goto(f"/jobs/{job.uid}/?tab={tab}")
    expect(alices.locator(shown)).to_have_count(0)

    place(job, supply)
    transitions.move(job, frm=Job.State.QUEUED, to=Job.State.ADMITTED, event=ADMITTED)

    expect(alices.locator(shown)).to_be_visible()


def test_a_question_before_a_cancel_knows_what_the_run_has_computed_meanwhile(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    job = make_job(team, alice, queue=supply.queue, workers=2, gpus_per_worker=8, spec=SPEC)
    alices.goto(f"/jobs/{job.uid}/")
    begun = clock.now() - timedelta(hours=3)
    place(job, supply)
    job.attempts.update(started_at=begun)
    transitions.move(job, frm=Job.State.QUEUED, to=Job.State.ADMITTED, event=ADMITTED, started_at=begun)
    expect(alices.locator("#head-state")).to_contain_text("Admitted")
    alices.get_by_role("button", name="Cancel").click()
    expect(alices.get_by_role("dialog")).to_contain_text("48.0 GPU-hours are lost.")

    alices.get_by_role("button", name="Keep it").click()
    # A cell that has the focus waits.
    alices.locator("#find").focus()
    transitions.move(job, frm=Job.State.ADMITTED, to=Job.State.STARTING, event=Event("starting"))
    transitions.move(job, frm=Job.State.STARTING, to=Job.State.SUCCEEDED, event=Event("succeeded"))
    expect(alices.locator("#head-state")).to_contain_text("Succeeded")
    expect(alices.get_by_role("button", name="Cancel")).to_have_count(0)


def test_the_scale_dialog_forgets_what_was_given_up_and_shows_what_somebody_else_set(
    alices: Page, team: Team, alice: User, supply: Supply
) -> None:
    job = make_placed(team, alice, supply, kind="inference", workload="deployment")
    alices.goto(f"/jobs/{job.uid}/")
    field = alices.get_by_role("spinbutton", name="Replicas")
    alices.get_by_role("button", name="Scale").click()
    expect(field).to_have_value("2")
    field.fill("7")
    control.scale_service(actor=SYSTEM, job=job, replicas=5)
    alices.keyboard.press("Escape")

    # The hidden field follows before it is seen again.
    expect(alices.locator("#replicas")).to_have_value("5")
    alices.get_by_role("button", name="Scale").click()
    expect(field).to_have_value("5")


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
