"""Forms: the preview follows the typing, lists grow and shrink, closed groups tell their values."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_the_preview_follows_the_typing(gallery: Page) -> None:
    gallery.goto("/")
    gallery.locator("#name").fill("vit")

    expect(gallery.locator("[data-preview]")).to_have_text("vit with --epochs")


def test_rows_of_a_list_are_added_and_removed(gallery: Page) -> None:
    gallery.goto("/")
    gallery.get_by_role("button", name="Add").click()
    gallery.keyboard.type("100")
    expect(gallery.locator("[data-preview]")).to_contain_text("--epochs 100")

    gallery.get_by_role("button", name="Remove").first.click()
    expect(gallery.locator("[data-preview]")).to_contain_text("with 100")


def test_a_closed_group_tells_its_values(gallery: Page) -> None:
    gallery.goto("/")
    gallery.locator("summary", has_text="Topology").click()
    gallery.locator("#level").fill("block")

    expect(gallery.locator("[data-group-summary]")).to_have_text("block in prefer")


def test_form_and_yaml_are_one_document(gallery: Page) -> None:
    gallery.goto("/")
    gallery.get_by_label("Name in the document").fill("llm")
    gallery.get_by_role("tab", name="YAML").click()
    expect(gallery.locator("textarea[name=yaml]")).to_have_value("name: llm")

    gallery.locator("textarea[name=yaml]").fill("name: other")
    gallery.get_by_role("tab", name="Form").click()
    expect(gallery.locator("[name=spec_name]")).to_have_value("other")


def test_text_that_cannot_be_read_keeps_its_tab_and_is_not_lost(gallery: Page) -> None:
    gallery.goto("/")
    gallery.get_by_role("tab", name="YAML").click()
    gallery.locator("textarea[name=yaml]").fill("\tname")
    gallery.get_by_role("tab", name="Form").click()

    expect(gallery.locator("[data-spec-error]")).to_have_text("line 1: tab")
    expect(gallery.locator("textarea[name=yaml]")).to_have_value("\tname")
