"""Reads of what the GPUs measured, on a common grid of times: raw while it is kept, minutes beyond."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Max

from clusters.models import GpuSample
from clusters.models.telemetry import RAW_WINDOW
from portal.core import clock

# Points of one line: what a chart of this width can show.
MOST_POINTS = 240
FIGURES = ("utilisation", "memory_used", "memory_total", "power", "temperature")
# This many missed scrapes make a chart stale.
STALE_SCRAPES = 3

_RAW_JOB = """
SELECT coalesce(rank, 0), date_bin(%s, at, 'epoch'), avg(utilisation), avg(memory_used), avg(memory_total),
       avg(power), avg(temperature)
FROM clusters_gpusample WHERE run = %s AND at >= %s AND at < %s GROUP BY 1, 2
"""
_MINUTES_JOB = """
SELECT rank, date_bin(%s, minute, 'epoch'), avg(utilisation), avg(memory_used), avg(memory_total),
       avg(power), avg(temperature)
FROM clusters_jobminute WHERE run = %s AND minute >= %s AND minute < %s GROUP BY 1, 2
"""
_RAW_NODE = """
SELECT index, date_bin(%s, at, 'epoch'), (array_agg(run ORDER BY at DESC))[1], avg(utilisation), avg(memory_used),
       avg(memory_total), avg(power), avg(temperature)
FROM clusters_gpusample WHERE node_id = %s AND at >= %s AND at < %s GROUP BY 1, 2
"""
_CLUSTERS = """
SELECT cluster_id, date_bin(%s, minute, 'epoch'),
       sum(utilisation_held * gpus_held) / nullif(sum(gpus_held) FILTER (WHERE utilisation_held IS NOT NULL), 0),
       sum(utilisation * gpus) / nullif(sum(gpus) FILTER (WHERE utilisation IS NOT NULL), 0)
FROM clusters_nodeminute
WHERE minute >= %s AND minute < %s AND (%s::bigint[] IS NULL OR cluster_id = ANY(%s)) GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Grid:
    """The times of a chart: `step` apart, the last one is the newest whole step."""

    times: tuple[datetime, ...]
    step: timedelta

    @property
    def since(self) -> datetime:
        """The first time."""
        return self.times[0]

    @property
    def until(self) -> datetime:
        """The end of the last step."""
        return self.times[-1] + self.step

    def lay(self, points: Mapping[datetime, float | None]) -> list[float | None]:
        """Put points on the grid; a time without one is a gap."""
        return [points.get(at) for at in self.times]


@dataclass(frozen=True, slots=True)
class NodeSeries:
    """For each figure the series of each GPU of a node, by its index, and the run that each served last ("": none)."""

    figures: Mapping[str, Mapping[int, list[float | None]]]
    runs: Mapping[int, str]


def grid(since: datetime, until: datetime) -> Grid:
    """Return a grid over the span, fine enough for a chart and never finer than two scrapes.

    With steps of one scrape a scrape that comes a moment late would show as a gap.
    """
    span = max(1.0, (until - since).total_seconds())
    finest = 60.0 if _is_beyond_raw(since) else 2 * settings.MUSTER_SCRAPE_S
    steps = max(1.0, span / MOST_POINTS / finest)
    step = timedelta(seconds=finest * int(steps if steps == int(steps) else steps + 1))
    first = _floor(since, step)
    count = min(MOST_POINTS + 1, int((until - first) / step) + 1)
    return Grid(tuple(first + step * index for index in range(count)), step)


def job_series(run: str, on: Grid) -> dict[str, dict[int, list[float | None]]]:
    """Return for each figure the series of each rank."""
    statement = _MINUTES_JOB if _is_beyond_raw(on.since) else _RAW_JOB
    return _by_line(_rows(statement, [on.step, run, on.since, on.until]), on)


def node_series(node_id: int, on: Grid) -> NodeSeries:
    """Return what each GPU of a node measured; within the raw window only."""
    rows = _rows(_RAW_NODE, [on.step, node_id, on.since, on.until])
    runs = {index: run for index, _at, run, *_values in sorted(rows, key=lambda row: row[1])}
    return NodeSeries(_by_line([(index, at, *values) for index, at, _run, *values in rows], on), runs)


def cluster_series(on: Grid, cluster_ids: Collection[int] | None = None) -> dict[int, list[float | None]]:
    """Return the utilisation of the GPUs that jobs hold, by cluster: of all clusters or of these alone."""
    wanted = None if cluster_ids is None else list(cluster_ids)
    points: dict[int, dict[datetime, float | None]] = defaultdict(dict)
    for cluster_id, at, held, _all in _rows(_CLUSTERS, [on.step, on.since, on.until, wanted, wanted]):
        points[cluster_id][at] = held
    return {cluster_id: on.lay(by_time) for cluster_id, by_time in points.items()}


def latest_by_gpu(node_ids: Sequence[int]) -> dict[tuple[int, int], float]:
    """Return the newest utilisation of each GPU, by (node, index), from the last minute."""
    since = clock.now() - timedelta(seconds=60)
    rows = (
        GpuSample.objects.filter(node_id__in=node_ids, at__gte=since)
        .order_by("node_id", "index", "-at")
        .distinct("node_id", "index")
        .values_list("node_id", "index", "utilisation")
    )
    return {(node_id, index): value for node_id, index, value in rows if value is not None}


def latest_of_holders(cluster_ids: Collection[int]) -> dict[tuple[int, str], list[float]]:
    """Return the newest utilisation of each GPU that a pod of ours holds, by (node, run), in the order of the GPUs.

    Under (node, "") stand those of all runs of the node. A GPU that missed so many scrapes that it counts as stale
    is left out.
    """
    since = clock.now() - timedelta(seconds=STALE_SCRAPES * settings.MUSTER_SCRAPE_S + 1)
    rows = (
        GpuSample.objects.filter(cluster_id__in=cluster_ids, at__gte=since)
        .exclude(run="")
        .order_by("node_id", "index", "-at")
        .distinct("node_id", "index")
        .values_list("node_id", "run", "utilisation")
    )
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    for node_id, run, value in rows:
        if value is not None:
            found[node_id, run].append(value)
            found[node_id, ""].append(value)
    return dict(found)


def last_sample_age_s(run: str) -> float | None:
    """Return how old the newest sample of a job is; None when there is none."""
    newest = GpuSample.objects.filter(run=run).aggregate(at=Max("at"))["at"]
    return (clock.now() - newest).total_seconds() if newest else None


def is_stale(age_s: float | None) -> bool:
    """Whether so many scrapes are missing that the chart must say so."""
    return age_s is None or age_s > STALE_SCRAPES * settings.MUSTER_SCRAPE_S + 1


def _by_line(rows: Iterable[tuple[Any, ...]], on: Grid) -> dict[str, dict[int, list[float | None]]]:
    points: dict[str, dict[int, dict[datetime, float | None]]] = {name: defaultdict(dict) for name in FIGURES}
    for line, at, *values in rows:
        for name, value in zip(FIGURES, values, strict=True):
            points[name][line][at] = value
    return {name: {line: on.lay(by_line[line]) for line in sorted(by_line)} for name, by_line in points.items()}


def _is_beyond_raw(since: datetime) -> bool:
    return since < clock.now() - RAW_WINDOW


def _floor(at: datetime, step: timedelta) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // step.total_seconds() * step.total_seconds(), tz=at.tzinfo)


def _rows(statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
