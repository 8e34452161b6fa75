"""The figures of the pages of clusters and nodes."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from clusters.models import Cluster, Node
from clusters.models.telemetry import RAW_WINDOW
from clusters.selectors import telemetry
from clusters.telemetry.figures import TARGET_UTILISATION, Figure, is_empty, line_figure

CLUSTER_WINDOW = timedelta(hours=6)
MIB_PER_GIB = 1024
NOW_STEPS = 10


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure with its title and unit."""

    id: str
    title: str
    unit: str
    figure: Figure

    @property
    def version(self) -> str:
        """What changes when the figure does."""
        return f"{zlib.crc32(json.dumps(self.figure).encode()):08x}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured."""
        return is_empty(self.figure)


@dataclass(frozen=True, slots=True)
class GpuNow:
    """The newest measurements of one GPU: percent, MiB, watts, degrees Celsius. None: not measured lately."""

    index: int
    run: str
    utilisation: float | None
    memory_used: float | None
    memory_total: float | None
    power: float | None
    temperature: float | None


@dataclass(frozen=True, slots=True)
class NodeMeasurements:
    """The GPUs of a node now, by index, and the charts of the last minutes."""

    gpus: Sequence[GpuNow]
    charts: Sequence[Chart]


def cluster_chart(cluster: Cluster, now: datetime) -> Chart:
    """Return the utilisation of the GPUs that jobs hold, over the last hours, against the target. One query."""
    on = telemetry.grid(now - CLUSTER_WINDOW, now)
    series = telemetry.cluster_series(on, [cluster.pk]).get(cluster.pk, on.lay({}))
    figure = line_figure(on.times, {cluster.name: series}, top=100, target=TARGET_UTILISATION)
    return Chart("utilisation", _("Utilisation of held GPUs, last 6 hours"), "%", figure)


def node_measurements(node: Node, now: datetime) -> NodeMeasurements:
    """Return what the GPUs of a node measured over the raw window, one series a GPU. One query."""
    on = telemetry.grid(now - RAW_WINDOW + timedelta(seconds=1), now)
    series = telemetry.node_series(node.pk, on)
    lines = {name: {_gpu(index): values for index, values in gpus.items()} for name, gpus in series.figures.items()}
    used = {name: [_gib(value) for value in values] for name, values in lines["memory_used"].items()}
    totals = [value for values in lines["memory_total"].values() for value in values if value is not None]
    top = round(max(totals) / MIB_PER_GIB) if totals else None
    busy = line_figure(on.times, lines["utilisation"], top=100)
    return NodeMeasurements(
        gpus=[_now(index, run, series) for index, run in sorted(series.runs.items())],
        charts=[
            Chart("gpu-utilisation", _("GPU utilisation"), "%", busy),
            Chart("gpu-memory", _("GPU memory"), "GiB", line_figure(on.times, used, top=top)),
            Chart("gpu-power", _("Power per GPU"), "W", line_figure(on.times, lines["power"])),
            Chart("gpu-temperature", _("GPU temperature"), "°C", line_figure(on.times, lines["temperature"])),
        ],
    )


def _now(index: int, run: str, series: telemetry.NodeSeries) -> GpuNow:
    # The last step has just begun, and idle GPUs are looked at less often: a few steps back is still now.
    last = {
        name: next((value for value in reversed(gpus[index][-NOW_STEPS:]) if value is not None), None)
        for name, gpus in series.figures.items()
    }
    return GpuNow(index=index, run=run, **last)


def _gpu(index: int) -> str:
    return _("GPU %(index)d") % {"index": index}


def _gib(value: float | None) -> float | None:
    return None if value is None else value / MIB_PER_GIB
