"""Readings + the pods that run now -> samples that know their job."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from clusters.telemetry.parse import Reading

FIGURES = ("utilisation", "memory_used", "memory_total", "power", "temperature")


@dataclass(frozen=True, slots=True)
class Owner:
    """The job and rank of a pod, and its uid."""

    run: str
    rank: int | None
    pod: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One GPU at one moment. An empty run: nobody of ours held it."""

    at: datetime
    cluster_id: int
    node_id: int
    gpu: str
    index: int
    run: str
    rank: int | None
    utilisation: float | None
    memory_used: float | None
    memory_total: float | None
    power: float | None
    temperature: float | None


def samples(
    readings: Iterable[Reading],
    owners: Mapping[tuple[str, str], Owner],
    *,
    at: datetime,
    cluster_id: int,
    node_id: int,
) -> Iterator[Sample]:
    """Name the owner of each reading.

    owners: by (namespace, pod), of pods that run on this node now. Exporters go on naming a pod for minutes after it
    ended, so a name that is not among them means nobody.
    """
    for reading in readings:
        owner = owners.get((reading.namespace, reading.pod))
        yield Sample(
            at=at,
            cluster_id=cluster_id,
            node_id=node_id,
            gpu=reading.gpu,
            index=reading.index,
            run=owner.run if owner else "",
            rank=owner.rank if owner else None,
            utilisation=reading.values.get("utilisation"),
            memory_used=reading.values.get("memory_used"),
            memory_total=reading.memory_total,
            power=reading.values.get("power"),
            temperature=reading.values.get("temperature"),
        )
