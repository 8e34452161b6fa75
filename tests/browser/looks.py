"""What must hold on every page, whatever it shows. For use by any browser test."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

BOOTSTRAPS_BLUE = "rgb(13, 110, 253)"

# Every colour that an element, or its ::before and ::after, really paints.
_PAINTED = """(blue) => {
  const names = ["color", "backgroundColor", "borderTopColor", "borderInlineStartColor", "outlineColor",
    "fill", "stroke", "boxShadow"];
  const found = [];
  for (const element of document.querySelectorAll("body, body *")) {
    for (const part of [null, "::before", "::after"]) {
      const style = getComputedStyle(element, part);
      for (const name of names) {
        if (style[name].includes(blue)) found.push(`${element.outerHTML.slice(0, 80)} ${part ?? ""} ${name}`);
      }
    }
  }
  return found;
}"""


def assert_no_compiled_blue(page: Page) -> None:
    """Fail when anything on the page is painted in the blue that Bootstrap's stylesheet was compiled with."""
    found = page.evaluate(_PAINTED, BOOTSTRAPS_BLUE)

    assert found == []


def assert_axe_clean(page: Page) -> None:
    """Fail when axe finds a breach of accessibility, naming the rule and the elements."""
    violations = Axe().run(page).response["violations"]

    assert not violations, [_summary(violation) for violation in violations]


def assert_no_sideways_scroll(page: Page) -> None:
    """Fail when the page is wider than its window; only tables and logs may scroll, inside themselves."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert wide <= 0


def _summary(violation: dict[str, Any]) -> str:
    nodes = "; ".join(f"{node['html'][:120]} ({node['failureSummary'][:160]})" for node in violation["nodes"])
    return f"{violation['id']}: {nodes}"
