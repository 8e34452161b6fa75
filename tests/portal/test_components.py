"""Template tags and components: what they say, not only how they look."""

from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.template import Context, Template
from django.test import override_settings
from django.utils import translation

from portal.core import clock
from portal.web.quantities import duration_text, gib_text
from portal.web.vocabulary import STATES


def render(source: str, **values: object) -> str:
    return Template(source).render(Context(values))


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_a_glyph_and_a_word_and_a_hue(name: str) -> None:
    html = render("{% state name %}", name=name)

    assert "<svg" in html
    assert str(STATES[name].word) in html
    assert f"m-{STATES[name].hue}" in html


def test_a_state_nobody_knows_is_unknown_and_not_an_error() -> None:
    assert "Unknown" in render('{% state "levitating" %}')


def test_a_stale_state_keeps_its_word_but_says_that_it_is_old() -> None:
    html = render('{% state "running" stale=True %}')

    assert "Running" in html
    assert "stale" in html
    assert "m-active" not in html


def test_a_waiting_gang_has_one_hollow_square_a_worker() -> None:
    html = render('{% gang 4 state="queued" %}')

    assert html.count('class="m-wait"') == 4
    assert "4 workers, waiting" in html


def test_a_gang_that_is_over_has_no_running_square() -> None:
    html = render('{% gang 4 4 4 "succeeded" %}')

    assert html.count('class="m-over"') == 4
    assert "m-run" not in html


def test_a_service_that_grows_shows_running_held_and_waiting_replicas() -> None:
    html = render('{% gang 5 held=4 running=3 kind="inference" %}')

    assert "5 replicas, 3 running" in html
    assert [html.count(f'class="{kind}"') for kind in ("m-run", "m-held", "m-wait")] == [3, 1, 1]


@pytest.mark.parametrize(("running", "squares"), [(0, 0), (1, 1), (32, 8), (63, 15), (64, 16)])
def test_a_wide_gang_is_shown_in_proportion_and_counted(running: int, squares: int) -> None:
    html = render("{% gang 64 held=64 running=running %}", running=running)

    assert html.count("<i ") == 16
    assert html.count('class="m-run"') == squares
    assert "<small>64</small>" in html


@pytest.mark.parametrize(("util", "step"), [(0, "m-u1"), (19.9, "m-u1"), (20, "m-u2"), (59, "m-u3"), (100, "m-u5")])
def test_a_busy_gpu_is_never_drawn_as_a_free_one(util: float, step: str) -> None:
    html = render("{% gpu_cells cells %}", cells=[{"state": "busy", "util": util}])

    assert step in html
    assert "m-gpu-free" not in html


def test_gpu_cells_say_their_counts_in_words() -> None:
    cells = [{"state": "busy", "util": 90}, "free", "free", "fault"]

    assert 'aria-label="4 GPUs: 2 free, 1 busy, 1 fault"' in render("{% gpu_cells cells %}", cells=cells)


def test_a_quota_within_its_nominal_amount_has_nothing_hatched() -> None:
    html = render("{% quota_bar 40 64 %}")

    assert "40 of 64" in html
    assert 'width="62.50%"' in html
    assert "m-hatch" not in html


def test_a_part_above_the_quota_is_hatched_and_named() -> None:
    html = render("{% quota_bar 24 16 %}")

    assert "m-hatch" in html
    assert "24 of 16" in html
    assert "8 above the quota" in html


@pytest.mark.parametrize(("used", "nominal"), [(0, 0), (3, 0)])
def test_a_quota_of_nothing_is_no_division_by_zero(used: int, nominal: int) -> None:
    assert f"{used} of {nominal}" in render("{% quota_bar used nominal %}", used=used, nominal=nominal)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.6, "1 m"),
        (41, "41 s"),
        (1080, "18 m"),
        (7800, "2 h 10 m"),
        (21720, "6 h 02 m"),
        (302400, "3 d 12 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_clock_that_runs_ahead_gives_no_negative_age() -> None:
    assert "0 s" in render("{{ moment|age }}", moment=clock.now() + timedelta(seconds=5))


def test_what_is_not_known_is_a_dash_and_never_zero() -> None:
    html = render("{{ none|age }}{{ none|duration }}{{ none|gib }}", none=None)

    assert html.count("&ndash;") == 3
    assert "0" not in html


@pytest.mark.parametrize(
    ("amount", "unit", "text"), [(1536, "MiB", "1.5 GiB"), (65536, "MiB", "64 GiB"), (1 << 30, "B", "1 GiB")]
)
def test_memory_is_shown_in_gib(amount: float, unit: str, text: str) -> None:
    assert gib_text(amount, unit) == text


def test_amounts_stay_together_in_a_right_to_left_page() -> None:
    with translation.override("ar"):
        html = render('{{ seconds|duration }}{{ "4 x 8"|bdi }}', seconds=43200)

    assert html.count("<bdi>") == 2


@pytest.mark.parametrize("source", ["{{ text|bdi }}", "{% pill text %}", "{% state 'running' word=text %}"])
def test_text_of_others_is_escaped(source: str) -> None:
    assert "<img" not in render(source, text="<img src=x>")


def test_a_figure_cannot_end_its_script() -> None:
    html = render('{% chart "util" figure "Utilisation" unit="%" %}', figure={"data": [{"name": "</script><b>"}]})

    assert html.count("</script>") == 1


def test_a_confirmation_names_the_act_on_its_button_and_keeps_by_default() -> None:
    html = render(
        '{% confirm "stop" "Cancel vit-7?" verb="Cancel run" url="/x/" %}<p>Lost: 1.6 GPU-hours.</p>{% endconfirm %}'
    )

    assert "Cancel run</button>" in html
    assert "Lost: 1.6 GPU-hours." in html
    assert html.index("autofocus") < html.index("Cancel run</button>")


def test_a_table_on_a_narrow_page_turns_its_rows_into_cards_unless_told_not_to() -> None:
    tall = render('{% data_table "Jobs" %}<tbody></tbody>{% enddata_table %}')
    wide = render('{% data_table "Ranks" cards=False %}<tbody></tbody>{% enddata_table %}')

    assert "m-cards" in tall
    assert "m-cards" not in wide


@pytest.mark.parametrize("name", ["400.html", "500.html"])
@override_settings(ROOT_URLCONF="tests.portal.gallery")
def test_an_error_page_needs_nothing_from_the_request(name: str) -> None:
    html = render(f'{{% include "{name}" %}}')

    assert "<h1>" in html
    assert balanced(html)


def balanced(html: str) -> bool:
    """Whether every element that was opened is closed, in order."""
    parser = _Balance()
    parser.feed(html)
    return not parser.opened and not parser.wrong


class _Balance(HTMLParser):
    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag not in self.VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.opened or self.opened.pop() != tag:
            self.wrong.append(tag)
