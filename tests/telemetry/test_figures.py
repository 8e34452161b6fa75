"""Figures as Plotly takes them, checked with Plotly's own package and a strict JSON reader."""

import json
from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go
import pytest

from clusters.telemetry.figures import Figure, Series, is_empty, line_figure

START = datetime(2026, 12, 1, tzinfo=UTC)


def times(count: int) -> list[datetime]:
    return [START + timedelta(seconds=4 * index) for index in range(count)]


def figure(lines: dict[str, Series], **options: float) -> Figure:
    count = len(next(iter(lines.values()), []))
    return line_figure(times(count), lines, **options)


def strict(value: object) -> object:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(json.dumps(value), parse_constant=refuse)


def plotted(made: Figure) -> go.Figure:
    """Build it with Plotly, which refuses unknown properties. Symbolic colours become real ones first."""
    text = json.dumps(made)
    for name, colour in (("s1/20", "#aaa"), *((f"s{n}", "#abc") for n in range(1, 7)), ("target", "#777")):
        text = text.replace(f'"{name}"', f'"{colour}"')
    return go.Figure(json.loads(text))


def test_what_was_not_measured_is_a_gap_and_never_a_zero() -> None:
    made = figure({"rank 0": [1.0, float("nan"), float("inf"), float("-inf"), None, 3.0]})

    (trace,) = strict(made)["data"]  # type: ignore[index]
    assert trace["y"] == [1.0, None, None, None, None, 3.0]
    assert trace["connectgaps"] is False


@pytest.mark.parametrize(
    ("values", "dots"),
    [
        ([5.0], [0]),
        ([None, None, 0.0, None], [2]),
        ([1.0, None, 2.0, 3.0, None, 4.0], [0, 5]),
        ([1.0, 2.0, None, 3.0, 4.0], []),
        ([None, float("nan"), 1.0, float("inf")], [2]),
        ([None, None], []),
    ],
)
def test_a_value_between_gaps_has_a_dot_and_a_line_has_none(values: Series, dots: list[int]) -> None:
    (trace,) = plotted(figure({"rank 0": values})).data

    sizes = trace.marker.size or ()
    assert [at for at, size in enumerate(sizes) if size] == dots
    assert trace.mode == ("lines+markers" if dots else "lines")


def test_of_a_band_the_median_has_the_dots() -> None:
    lines: dict[str, Series] = {f"rank {n}": [None, 50.0 + n, None] for n in range(8)}

    modes = {trace.name: trace.mode for trace in plotted(figure(lines)).data}

    assert modes == {"p10": "lines", "p90": "lines", "median": "lines+markers"}


@pytest.mark.parametrize("count", [1, 2, 4])
def test_up_to_four_lines_are_named(count: int) -> None:
    made = figure({f"rank {n}": [float(n)] for n in range(count)})

    assert [trace.name for trace in plotted(made).data] == [f"rank {n}" for n in range(count)]


def test_more_lines_become_a_band_a_median_and_the_outliers_by_name() -> None:
    lines: dict[str, Series] = {f"rank {n}": [90.0 + n % 3] * 5 for n in range(63)}
    lines["rank 63"] = [12.0] * 5

    names = [trace.name for trace in plotted(figure(lines)).data]

    assert names == ["p10", "p90", "median", "rank 63"]


def test_a_band_has_gaps_where_no_line_was_measured() -> None:
    lines: dict[str, Series] = {f"rank {n}": [50.0, None, 50.0] for n in range(8)}

    assert [trace.y[1] for trace in plotted(figure(lines)).data] == [None, None, None]


def test_the_target_is_drawn_and_the_axis_fixed() -> None:
    made = plotted(figure({"rank 0": [85.0]}, top=100, target=90))

    assert made.layout.yaxis.range == (0, 100)
    assert made.layout.shapes[0].y0 == 90


@pytest.mark.parametrize("lines", [{}, {"rank 0": []}, {"rank 0": [None, None]}])
def test_a_figure_without_a_measurement_is_known_as_empty(lines: dict[str, Series]) -> None:
    assert is_empty(figure(lines))
