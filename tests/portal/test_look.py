"""The stylesheet keeps its promises: contrast, telling hues apart, names, direction, size; vendored files are whole."""

import hashlib
import json
import re
import runpy
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from portal.web.vocabulary import PILLS, STATES
from tests.portal.colours import contrast, least_distance

STATIC = Path(__file__).resolve().parents[2] / "static"
TEMPLATES = STATIC.parent / "templates"
CSS = (STATIC / "css/app.css").read_text()
RULES = re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL)

GROUNDS = ("canvas", "surface", "sunken", "raised", "hover", "selected")
HUES = ("neutral", "active", "good", "warn", "bad")
SERIES = ("s1", "s2", "s3", "s4", "s5", "s6")
RAMP = ("u1", "u2", "u3", "u4", "u5")
TEXT, SHAPE = 4.5, 3.0  # WCAG 2.2: 1.4.3 and 1.4.11
BOOTSTRAPS_BLUE = re.compile(r"#0d6efd|#0b5ed7|#0a58ca|#86b7fe|13,\s?110,\s?253|49,\s?132,\s?253", re.IGNORECASE)


def tokens(selector: str) -> dict[str, str]:
    """Read the colours that a theme's block of the stylesheet sets."""
    body = CSS[CSS.index(selector) :]
    return dict(re.findall(r"--m-([\w-]+):(#[0-9A-Fa-f]+)", body[: body.index("}")]))


THEMES = {
    "light": tokens(":root,[data-bs-theme=light]{color-scheme"),
    "dark": tokens("[data-bs-theme=dark]{color-scheme"),
}
both_themes = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


@both_themes
@pytest.mark.parametrize("ink", ["ink", "ink-2", "ink-3", "accent", "accent-h", *HUES])
def test_text_can_be_read_on_every_ground(theme: dict[str, str], ink: str) -> None:
    worst = min(contrast(theme[ink], theme[ground]) for ground in GROUNDS)

    assert worst >= TEXT


@both_themes
@pytest.mark.parametrize("hue", HUES)
def test_a_pills_word_can_be_read_on_its_tint(theme: dict[str, str], hue: str) -> None:
    assert contrast(theme[hue], theme[f"{hue}-tint"]) >= TEXT


@both_themes
def test_the_primary_button_can_be_read_also_under_the_pointer(theme: dict[str, str]) -> None:
    assert min(contrast(theme["on-accent"], theme[ground]) for ground in ("accent", "accent-h")) >= TEXT


@both_themes
@pytest.mark.parametrize("shape", ["control", *(f"{hue}-fill" for hue in HUES)])
def test_glyphs_and_borders_stand_out_from_every_ground(theme: dict[str, str], shape: str) -> None:
    worst = min(contrast(theme[shape], theme[ground]) for ground in GROUNDS)

    assert round(worst, 1) >= SHAPE


@both_themes
@pytest.mark.parametrize("line", SERIES)
def test_chart_lines_stand_out_from_their_panel(theme: dict[str, str], line: str) -> None:
    assert contrast(theme[line], theme["surface"]) >= SHAPE


@both_themes
def test_hues_of_states_differ_for_every_kind_of_sight(theme: dict[str, str]) -> None:
    fills = [theme[f"{hue}-fill"] for hue in HUES]

    assert least_distance(combinations(fills, 2)) >= 10


@both_themes
def test_chart_lines_differ_for_every_kind_of_sight(theme: dict[str, str]) -> None:
    assert least_distance(combinations([theme[line] for line in SERIES], 2)) >= 8.5


@both_themes
def test_steps_of_the_ramp_differ_for_every_kind_of_sight(theme: dict[str, str]) -> None:
    assert least_distance(pairwise(theme[step] for step in RAMP)) >= 9


def test_both_themes_set_the_same_tokens() -> None:
    assert THEMES["light"].keys() == THEMES["dark"].keys()


def test_every_class_of_the_sheet_is_ours_by_prefix_or_bootstraps_own() -> None:
    bootstrap = (STATIC / "vendor/bootstrap/bootstrap.min.css").read_text()
    selectors = re.sub(r"\{[^{}]*\}|url\([^)]*\)", "{}", RULES)
    named = set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors))
    strangers = {name for name in named if not name.startswith("m-") and f".{name}" not in bootstrap}

    assert named
    assert not strangers


def test_the_sheet_knows_no_left_or_right() -> None:
    physical = re.findall(r"[{;\s](?:margin|padding|border|inset)?-?(?:left|right|top|bottom)(?:-[\w-]+)?\s*:", RULES)
    boxes = re.findall(r"[{;\s](?:min-|max-)?(?:width|height)\s*:", re.sub(r"@media[^{]*", "", RULES))
    sides = re.findall(r"(?:text-align|float|clear)\s*:\s*(?:left|right)", RULES)

    assert [*physical, *boxes, *sides] == []


def test_the_sheet_stays_small() -> None:
    assert len(CSS.encode()) <= 25_000


def test_no_blue_compiled_into_bootstrap_is_repeated() -> None:
    assert not BOOTSTRAPS_BLUE.search(CSS)


def test_every_class_of_the_templates_that_is_ours_is_drawn_or_a_hook() -> None:
    drawn = set(re.findall(r"\.(m-[\w-]+)", CSS))
    used: set[str] = set()
    for path in TEMPLATES.rglob("*.html"):
        for classes in re.findall(r'class="([^"{}]*)"', path.read_text()):
            used |= {name for name in classes.split() if name.startswith("m-")}

    assert used <= drawn


@pytest.mark.parametrize("look", [*STATES.values(), *PILLS.values()], ids=[*STATES, *PILLS])
def test_every_word_has_one_of_the_five_hues(look: object) -> None:
    assert getattr(look, "hue", None) in HUES


def test_templates_hold_no_inline_script_style_or_handler() -> None:
    found = []
    for path in TEMPLATES.rglob("*.html"):
        if "emails" in path.parts:
            continue
        text = path.read_text()
        found += [
            f"{path.name}: {hit}" for hit in re.findall(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\son\w+=|\sstyle=", text)
        ]

    assert found == []


def test_vendored_files_are_those_of_the_manifest() -> None:
    vendor = STATIC / "vendor"
    manifest = json.loads((vendor / "manifest.json").read_text())
    recorded = {name: digest for package in manifest["packages"] for name, digest in package["files"].items()}
    recorded |= manifest["derived"]
    present = {
        str(path.relative_to(vendor)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"} and path.name != "manifest.json"
    }

    assert present == recorded


def test_every_vendored_package_brings_its_licence() -> None:
    manifest = json.loads((STATIC / "vendor/manifest.json").read_text())

    assert all(any("LICENSE" in name for name in package["files"]) for package in manifest["packages"])


def test_no_vendored_file_points_at_a_missing_source_map() -> None:
    texts = [path.read_text() for path in (STATIC / "vendor").rglob("*") if path.suffix in {".css", ".js"}]

    assert not any("sourceMappingURL=" in text for text in texts)


def test_plotlys_own_rules_are_those_of_the_bundle() -> None:
    refresh = runpy.run_path(str(STATIC / "vendor/refresh.py"))
    bundle = (STATIC / "vendor/plotly/plotly-cartesian.min.js").read_text()

    assert (STATIC / "vendor/plotly/plotly-global.css").read_text() == refresh["plotly_rules"](bundle)
