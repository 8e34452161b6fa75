"""The frame and every component as Chromium draws them: light, dark, right-to-left, wide and narrow, by keyboard."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.looks import assert_axe_clean, assert_no_compiled_blue, assert_no_sideways_scroll

pytestmark = pytest.mark.browser

SIZES = {"wide": (1440, 900), "narrow": (390, 844)}


def choose_theme(page: Page, theme: str) -> None:
    page.context.add_cookies([{"name": "muster_theme", "value": theme, "url": page.url}])
    page.reload()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_component_is_clean(gallery: Page, errors: list[str], theme: str, size: str) -> None:
    gallery.set_viewport_size({"width": SIZES[size][0], "height": SIZES[size][1]})
    gallery.goto("/?live=/live/")
    choose_theme(gallery, theme)

    expect(gallery.locator("html")).to_have_attribute("data-bs-theme", theme)
    assert_axe_clean(gallery)
    assert_no_compiled_blue(gallery)
    assert_no_sideways_scroll(gallery)
    assert errors == []


def test_a_right_to_left_page_takes_the_mirrored_sheet(gallery: Page) -> None:
    gallery.set_extra_http_headers({"Accept-Language": "ar"})
    gallery.goto("/")

    expect(gallery.locator("html")).to_have_attribute("dir", "rtl")
    assert gallery.locator('link[href*="bootstrap.rtl"]').count() == 1
    rail = gallery.locator("#rail").bounding_box()
    assert rail
    assert rail["x"] > 720
    assert_axe_clean(gallery)
    assert_no_sideways_scroll(gallery)


@pytest.mark.parametrize("path", ["/jobs/list/", "/jobs/nothing-here/", "/broken/"])
def test_the_frame_and_the_error_pages_are_clean(gallery: Page, path: str) -> None:
    gallery.goto(path)

    assert_axe_clean(gallery)
    assert_no_compiled_blue(gallery)


def test_the_theme_changes_without_a_reload_and_stays(gallery: Page) -> None:
    gallery.goto("/")
    gallery.get_by_role("button", name="Theme").click()
    gallery.get_by_role("button", name="Dark").click()

    expect(gallery.locator("html")).to_have_attribute("data-bs-theme", "dark")
    gallery.reload()
    expect(gallery.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_auto_follows_the_system(gallery: Page) -> None:
    gallery.emulate_media(color_scheme="dark")
    gallery.goto("/")
    expect(gallery.locator("html")).to_have_attribute("data-bs-theme", "dark")

    gallery.emulate_media(color_scheme="light")
    expect(gallery.locator("html")).to_have_attribute("data-bs-theme", "light")


@pytest.mark.parametrize("keys", ["/", "Control+k"])
def test_keys_lead_to_the_search(gallery: Page, keys: str) -> None:
    gallery.goto("/")
    gallery.keyboard.press(keys)

    expect(gallery.locator("#find")).to_be_focused()
    expect(gallery.locator("#find")).to_have_value("")


def test_rows_are_walked_selected_and_opened_by_keyboard(gallery: Page) -> None:
    gallery.goto("/")
    for key in ("j", "j", "x"):
        gallery.keyboard.press(key)

    expect(gallery.locator("tr[data-at] .m-name")).to_contain_text("vit-large-ablate")
    expect(gallery.locator("[data-selected]")).to_have_text("1 selected")
    gallery.keyboard.press("k")
    gallery.keyboard.press("Enter")
    gallery.wait_for_url("**/jobs/list/?open=llm-sft-b64-3")


def test_a_key_that_is_typed_into_a_field_is_text(gallery: Page) -> None:
    gallery.goto("/")
    gallery.locator("#name").fill("")
    gallery.locator("#name").press_sequentially("jk/x?")

    expect(gallery.locator("#name")).to_have_value("jk/x?")
    expect(gallery.locator("tr[data-at]")).to_have_count(0)


def test_the_question_mark_shows_the_keys(gallery: Page) -> None:
    gallery.goto("/")
    gallery.keyboard.press("?")

    expect(gallery.get_by_role("dialog", name="Keyboard")).to_be_visible()
    gallery.keyboard.press("Escape")
    expect(gallery.get_by_role("dialog", name="Keyboard")).to_be_hidden()


def test_an_act_that_stops_work_asks_first_and_keeps_by_default(gallery: Page) -> None:
    gallery.goto("/")
    gallery.get_by_role("button", name="Cancel", exact=True).first.click()

    dialog = gallery.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    assert_axe_clean(gallery)
    gallery.keyboard.press("Enter")
    expect(dialog).to_be_hidden()


def test_the_rail_opens_on_a_narrow_page(gallery: Page) -> None:
    gallery.set_viewport_size({"width": 390, "height": 844})
    gallery.goto("/")
    expect(gallery.locator("#rail")).to_be_hidden()

    gallery.get_by_role("button", name="Menu").click()
    expect(gallery.get_by_role("link", name="Fleet")).to_be_visible()


def test_the_first_tab_stop_skips_to_the_content(gallery: Page) -> None:
    gallery.goto("/")
    gallery.keyboard.press("Tab")
    expect(gallery.get_by_role("link", name="Skip to content")).to_be_focused()

    gallery.keyboard.press("Enter")
    expect(gallery.locator("#main")).to_be_focused()


def test_a_chart_keeps_its_gap_and_takes_the_themes_colours(gallery: Page, errors: list[str]) -> None:
    gallery.goto("/")
    plot = gallery.locator('[data-chart="util-cell"]')
    plot.scroll_into_view_if_needed()
    lines = plot.locator(".scatterlayer path.js-line")

    expect(lines).to_have_count(8)  # four lines in two pieces: before and after the outage
    expect(lines.first).to_have_css("stroke", "rgb(58, 108, 204)")
    expect(plot).to_contain_text("rank 0")
    gallery.get_by_role("button", name="Theme").click()
    gallery.get_by_role("button", name="Dark").click()
    expect(lines.first).to_have_css("stroke", "rgb(82, 145, 233)")
    assert errors == []


def test_a_chart_has_its_numbers_as_a_table(gallery: Page) -> None:
    gallery.goto("/")
    gallery.locator("#util summary").click()

    expect(gallery.locator("#util table thead")).to_contain_text("rank 3")
    expect(gallery.locator("#util table tbody tr")).to_have_count(30)
