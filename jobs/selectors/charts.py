"""The figures of a job's page."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _

from clusters.selectors import telemetry
from clusters.telemetry.figures import TARGET_UTILISATION, Figure, line_figure
from jobs.models import Job
from portal.core import clock
from portal.core.errors import BadQueryError

MIB_PER_GIB = 1024
# Windows that a page offers, in minutes.
WINDOWS: Mapping[str, int] = {"15m": 15, "1h": 60, "6h": 360, "24h": 1440, "7d": 10_080}


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure with its title."""

    id: str
    title: str
    unit: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Charts:
    """All figures of a job, how old their newest sample is, and whether that is too old."""

    charts: tuple[Chart, ...]
    age_s: float | None
    is_stale: bool


def charts_of(job: Job, window: str = "15m") -> Charts:
    """Return the charts of a job: one line a rank. Raise BadQueryError for an unknown window."""
    if window not in WINDOWS:
        text = _("Unknown window. Known are: %(known)s.") % {"known": ", ".join(WINDOWS)}
        raise BadQueryError(text, code="unknown_window", field="window")
    until = job.finished_at or clock.now()
    since = max(until - timedelta(minutes=WINDOWS[window]), job.started_at or job.created_at)
    on = telemetry.grid(since, until)
    series = telemetry.job_series(job.uid, on)
    times = on.times
    lines = {name: {_rank(rank): values for rank, values in ranks.items()} for name, ranks in series.items()}
    used = {name: _gib(values) for name, values in lines["memory_used"].items()}
    busy = line_figure(times, lines["utilisation"], top=100, target=TARGET_UTILISATION)
    age = telemetry.last_sample_age_s(job.uid)
    return Charts(
        charts=(
            Chart("utilisation", _("GPU utilisation"), "%", busy),
            Chart("memory", _("GPU memory"), "GiB", line_figure(times, used, top=_top(lines["memory_total"]))),
            Chart("power", _("Power per GPU"), "W", line_figure(times, lines["power"])),
            Chart("temperature", _("GPU temperature"), "°C", line_figure(times, lines["temperature"])),
        ),
        age_s=age,
        is_stale=job.state == Job.State.RUNNING and telemetry.is_stale(age),
    )


def _rank(rank: int) -> str:
    return _("rank %(rank)d") % {"rank": rank}


def _gib(values: list[float | None]) -> list[float | None]:
    return [None if value is None else value / MIB_PER_GIB for value in values]


def _top(totals: Mapping[str, list[float | None]]) -> float | None:
    most = max((value for values in totals.values() for value in values if value is not None), default=None)
    return None if most is None else round(most / MIB_PER_GIB)
