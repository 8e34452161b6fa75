"""Live updates: a change moves nothing but its own cells, and the page says when it hears nothing."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.portal.gallery import Board

pytestmark = pytest.mark.browser

QUEUED = "#state-vit-large-ablate-with-a-long-name-somebody-chose-12"
NAME = QUEUED.removeprefix("#state-")


def test_a_change_of_state_moves_nothing_else(gallery: Page, board: Board) -> None:
    gallery.goto("/?live=/live/")
    gallery.locator("#find").fill("half a wo")
    gallery.evaluate("window.scrollTo(0, 200)")
    gallery.evaluate("document.querySelector('#rows').dataset.same = 'yes'")
    before = gallery.locator("#rows").bounding_box()

    board.change(NAME, "running")

    expect(gallery.locator(QUEUED)).to_contain_text("Running")
    expect(gallery.locator("#find")).to_be_focused()
    expect(gallery.locator("#find")).to_have_value("half a wo")
    assert gallery.evaluate("window.scrollY") == 200
    assert gallery.locator("#rows").bounding_box() == before
    expect(gallery.locator("#rows")).to_have_attribute("data-same", "yes")


def test_a_change_of_state_is_spoken_with_the_runs_name(gallery: Page, board: Board) -> None:
    gallery.goto("/?live=/live/")
    board.change("tok-prep-1", "running")

    expect(gallery.locator("[data-announce]")).to_have_text("tok-prep-1: Running")


def test_a_new_row_waits_until_it_is_asked_for(gallery: Page, board: Board) -> None:
    gallery.goto("/?live=/live/")
    rows = gallery.locator("#rows tr")
    expect(rows).to_have_count(8)

    board.add("fresh-1")
    button = gallery.get_by_role("button", name="1 new, show")
    expect(button).to_be_visible()
    expect(rows).to_have_count(8)
    button.click()
    expect(rows).to_have_count(9)
    expect(rows.first).to_contain_text("fresh-1")
    expect(button).to_be_hidden()


def test_a_paused_page_stands_still_and_catches_up(gallery: Page, board: Board) -> None:
    gallery.goto("/?live=/live/")
    pause = gallery.get_by_role("button", name="Pause live updates")
    pause.click()
    expect(gallery.locator("[data-live-pill]")).to_have_text("Paused")
    board.change("tok-prep-1", "running")
    gallery.wait_for_timeout(300)
    expect(gallery.locator("#state-tok-prep-1")).to_contain_text("Admitted")

    pause.click()
    expect(gallery.locator("#state-tok-prep-1")).to_contain_text("Running")


def test_without_a_stream_the_page_asks_by_itself(gallery: Page, board: Board) -> None:
    board.is_streaming = False
    gallery.goto("/?live=/live/")
    board.change("tok-prep-1", "running")

    expect(gallery.locator("#state-tok-prep-1")).to_contain_text("Running")


def test_the_pill_says_live_and_then_offline(gallery: Page, board: Board) -> None:
    gallery.goto("/?live=/live/")
    expect(gallery.locator("[data-live-pill]")).to_have_text(re.compile(r"Live, \d s"))

    board.is_streaming = False
    gallery.context.set_offline(True)
    expect(gallery.locator("[data-live-pill]")).to_have_text("Offline, retrying")
    gallery.context.set_offline(False)
    board.is_streaming = True
    expect(gallery.locator("[data-live-pill]")).to_have_text(re.compile(r"Live, \d s"))
