"""Rows of public job traces -> arrivals with a duration and a size. Pure: text comes in, nothing is read."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job of a trace. Seconds from the first arrival; `queue` is empty where the trace names none."""

    at_s: float
    duration_s: float
    gpus: int
    queue: str


class TraceError(ValueError):
    """The text is not a trace that we know."""


def read(lines: Iterable[str], *, most: int) -> list[Arrival]:
    """Return the first `most` jobs, by arrival. Raise TraceError for unknown columns or bad numbers.

    Known: timestamp,duration,num_gpus,cluster (Philly by month) and job_id,num_gpu,submit_s,duration_s.
    """
    reader = csv.DictReader(lines)
    columns = set(reader.fieldnames or ())
    try:
        if {"timestamp", "duration", "num_gpus"} <= columns:
            found = list(_months(reader, most))
        elif {"submit_s", "duration_s", "num_gpu"} <= columns:
            found = list(_gangs(reader, most))
        else:
            raise TraceError(f"unknown columns: {', '.join(sorted(columns)) or 'none'}")
    except (ValueError, TypeError) as error:
        raise TraceError(str(error)) from error
    start = min((arrival.at_s for arrival in found), default=0.0)
    shifted = [Arrival(a.at_s - start, a.duration_s, a.gpus, a.queue) for a in found]
    return sorted(shifted, key=lambda arrival: arrival.at_s)


def _months(reader: Iterable[dict[str, str]], most: int) -> Iterator[Arrival]:
    for _number, row in zip(range(most), reader, strict=False):
        # Local times of one site: only differences are used.
        at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()
        yield Arrival(at, float(row["duration"]), int(row["num_gpus"]), row.get("cluster") or "")


def _gangs(reader: Iterable[dict[str, str]], most: int) -> Iterator[Arrival]:
    for _number, row in zip(range(most), reader, strict=False):
        yield Arrival(float(row["submit_s"]), float(row["duration_s"]), int(row["num_gpu"]), "")
