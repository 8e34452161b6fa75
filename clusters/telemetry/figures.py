"""Series -> figures: plain JSON for Plotly, with symbolic colours that the page resolves to its theme.

A series is a list of values on a common grid of times; None is "not measured" and stays a gap.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median, quantiles

Value = float | None
Series = Sequence[Value]
Figure = dict[str, object]

# Beyond this many lines nobody can tell them apart: a band and the outliers say more.
MOST_LINES = 4
MOST_OUTLIERS = 2
# A line is an outlier when its mean is this many band widths outside the band.
OUTLIER_WIDTHS = 1.0
MIN_WIDTH = 5.0
DOT_PX = 6
TARGET_UTILISATION = 90.0


def line_figure(
    times: Sequence[datetime],
    lines: Mapping[str, Series],
    *,
    top: float | None = None,
    target: float | None = None,
) -> Figure:
    """Draw up to four named lines; more become a p10-p90 band, their median, and the outliers by name.

    top: fixes the axis at 0..top. target: a dashed line with its label.
    """
    x = [at.isoformat() for at in times]
    clean = {name: [_finite(value) for value in series] for name, series in lines.items()}
    if len(clean) <= MOST_LINES:
        data = [_line(x, name, series, f"s{index}") for index, (name, series) in enumerate(clean.items(), start=1)]
    else:
        data = _band(x, clean)
    layout: dict[str, object] = {"yaxis": {"range": [0, top]}} if top is not None else {}
    if target is not None:
        layout["shapes"] = [_target(target)]
    return {"data": data, "layout": layout}


def is_empty(figure: Figure) -> bool:
    """Whether nothing was measured."""
    data = figure["data"]
    return not isinstance(data, list) or not any(value is not None for trace in data for value in trace["y"])


def _line(x: Sequence[str], name: str, y: Series, color: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(x),
        "y": list(y),
        "connectgaps": False,
        "line": {"color": color, "width": 1.5},
        **_dots(y, color),
    }


def _dots(y: Series, color: str) -> Figure:
    """Mark what a line cannot show: a value between two gaps."""
    padded = [None, *y, None]
    sizes = [
        DOT_PX if value is not None and before is None and after is None else 0
        for before, value, after in zip(padded[:-2], y, padded[2:], strict=True)
    ]
    if not any(sizes):
        return {}
    return {"mode": "lines+markers", "marker": {"size": sizes, "color": color, "opacity": 1}, "cliponaxis": False}


def _band(x: Sequence[str], lines: Mapping[str, Series]) -> list[Figure]:
    columns = [[value for value in column if value is not None] for column in zip(*lines.values(), strict=True)]
    low, middle, high = (
        [_rounded(part(column)) if column else None for column in columns] for part in (_p10, median, _p90)
    )
    edge = {"mode": "lines", "line": {"width": 0, "color": "s1"}}
    lower = _line(x, "p10", low, "s1") | edge
    upper = _line(x, "p90", high, "s1") | {
        **edge,
        "fill": "tonexty",
        "fillcolor": "s1/20",
    }
    outliers = _outliers(lines, low, high)
    named = [_line(x, name, lines[name], f"s{index}") for index, name in enumerate(outliers, start=2)]
    return [lower, upper, _line(x, "median", middle, "s1"), *named]


def _outliers(lines: Mapping[str, Series], low: Series, high: Series) -> list[str]:
    """Name the lines whose mean lies furthest outside the mean band, at most two."""
    bottom, ceiling = _mean(low), _mean(high)
    if bottom is None or ceiling is None:
        return []
    width = max(ceiling - bottom, MIN_WIDTH)
    distances = {}
    for name, series in lines.items():
        mean = _mean(series)
        if mean is not None:
            distances[name] = max(bottom - mean, mean - ceiling) / width
    far = sorted((name for name, far in distances.items() if far > OUTLIER_WIDTHS), key=lambda n: (-distances[n], n))
    return far[:MOST_OUTLIERS]


def _target(value: float) -> Figure:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": "target", "width": 1, "dash": "dash"},
        "label": {"text": f"{value:g}", "textposition": "start"},
    }


def _finite(value: Value) -> Value:
    # NaN and infinity are no JSON, and mean "not measured" all the same.
    return _rounded(value) if value is not None and math.isfinite(value) else None


def _rounded(value: float) -> float:
    return round(value, 2)


def _mean(series: Series) -> Value:
    values = [value for value in series if value is not None]
    return sum(values) / len(values) if values else None


def _p10(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else quantiles(values, n=10, method="inclusive")[0]


def _p90(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else quantiles(values, n=10, method="inclusive")[-1]
