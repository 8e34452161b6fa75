"""The reader of the API's schema works under the portal's own content policy."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from portal.identity.models import User
from tests.browser.looks import assert_no_sideways_scroll

pytestmark = pytest.mark.browser


def test_the_reader_opens_and_tries_out_calls_under_the_policy_of_every_page(
    page: Page, admin: User, errors: list[str], sign_in: Callable[[Page, User], None]
) -> None:
    sign_in(page, admin)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    profile, reader = page.goto("/people/profile/"), page.goto("/api/docs/")
    calls = page.locator(".opblock-summary-control")
    expect(page.locator("#operations-capacity-capacity_list")).to_be_visible()
    calls.evaluate_all("calls => calls.forEach(call => call.click())")
    opened = page.locator("#operations-capacity-capacity_list")
    opened.get_by_role("button", name="Try it out").click()
    opened.get_by_role("button", name="Execute").click()

    expect(opened.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(page.locator(".opblock.is-open")).to_have_count(calls.count())
    assert profile
    assert reader
    assert reader.headers["content-security-policy"] == profile.headers["content-security-policy"]
    home = page.url.partition("/api/")[0]
    assert [url for url in asked if not url.startswith((home, "data:"))] == []
    assert_no_sideways_scroll(page)
    assert errors == []
