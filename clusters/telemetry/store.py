"""Samples -> the raw window (by COPY) and minutes (by one statement each)."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime

from django.db import connection, transaction

from clusters.models import GpuSample
from clusters.models.telemetry import RAW_WINDOW
from clusters.telemetry.join import Sample

_COLUMNS = [field.name for field in fields(Sample)]
_COPY = f"COPY clusters_gpusample ({', '.join(chr(34) + name + chr(34) for name in _COLUMNS)}) FROM STDIN"

_JOB_MINUTES = """
INSERT INTO clusters_jobminute
    (minute, run, rank, samples, utilisation, memory_used, memory_total, power, temperature)
SELECT date_trunc('minute', at), run, coalesce(rank, 0), count(*), avg(utilisation), avg(memory_used),
       avg(memory_total), avg(power), avg(temperature)
FROM clusters_gpusample
WHERE at >= %s AND at < %s AND run <> ''
GROUP BY 1, 2, 3
ON CONFLICT (run, rank, minute) DO UPDATE SET
    samples = excluded.samples, utilisation = excluded.utilisation, memory_used = excluded.memory_used,
    memory_total = excluded.memory_total, power = excluded.power, temperature = excluded.temperature
"""
_NODE_MINUTES = """
INSERT INTO clusters_nodeminute
    (minute, cluster_id, node_id, samples, gpus, gpus_held, utilisation, utilisation_held, power, temperature)
SELECT date_trunc('minute', at), cluster_id, node_id, count(*), count(DISTINCT gpu),
       count(DISTINCT gpu) FILTER (WHERE run <> ''), avg(utilisation),
       avg(utilisation) FILTER (WHERE run <> ''), avg(power), avg(temperature)
FROM clusters_gpusample
WHERE at >= %s AND at < %s
GROUP BY 1, 2, 3
ON CONFLICT (node_id, minute) DO UPDATE SET
    samples = excluded.samples, gpus = excluded.gpus, gpus_held = excluded.gpus_held,
    utilisation = excluded.utilisation, utilisation_held = excluded.utilisation_held,
    power = excluded.power, temperature = excluded.temperature
"""


def keep(samples: Iterable[Sample]) -> int:
    """Append samples to the raw window; return how many."""
    count = 0
    with transaction.atomic(), connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for sample in samples:
            copy.write_row([getattr(sample, name) for name in _COLUMNS])
            count += 1
    return count


def roll_up(since: datetime, until: datetime) -> None:
    """Compute, again if need be, all whole minutes in [since, until)."""
    begin, end = since.replace(second=0, microsecond=0), until.replace(second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_JOB_MINUTES, [begin, end])
        cursor.execute(_NODE_MINUTES, [begin, end])


def prune(now: datetime) -> None:
    """Drop what is older than the raw window."""
    GpuSample.objects.filter(at__lt=now - RAW_WINDOW).delete()
