"""Store why each waiting job waits: on the job for pages, and as a Decision when it differs from the last one."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from jobs.engine.snapshot import Loaded
from jobs.models import Cycle, Decision, Job
from jobs.scheduler.types import Wait
from portal.core.publish import publish

# One statement for all rows: a queue of thousands moves up by one with every start.
_UPDATE = """
UPDATE jobs_job AS job
SET reason_code = new.code, reason_numbers = new.numbers::jsonb, position = new.position,
    gpus_ahead = new.gpus_ahead, version = job.version + 1
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::int[], %s::int[])
    AS new (id, code, numbers, position, gpus_ahead)
WHERE job.id = new.id AND job.state = ANY(%s)
"""


def store_waits(cycle: Cycle, loaded: Loaded, waits: Sequence[Wait]) -> None:
    """Write what changed since the last cycle, and tell the pages of the teams concerned."""
    pairs = [(loaded.jobs[wait.workload], wait) for wait in waits]
    moved = [(job, wait) for job, wait in pairs if _differs(job, wait)]
    if not moved:
        return
    _update_jobs(moved)
    Decision.objects.bulk_create(
        Decision(
            cycle=cycle,
            job=job,
            is_admitted=False,
            code=wait.reason.code.value,
            numbers=dict(wait.reason.numbers),
            position=wait.position,
            gpus_ahead=wait.gpus_ahead,
        )
        for job, wait in moved
        if _other_reason(job, wait)
    )
    for team_id in sorted({job.team_id for job, _wait in moved}):
        publish(f"team:{team_id}")


def _update_jobs(moved: Sequence[tuple[Job, Wait]]) -> None:
    columns: list[Any] = [
        [job.pk for job, _ in moved],
        [wait.reason.code.value for _, wait in moved],
        [json.dumps(dict(wait.reason.numbers)) for _, wait in moved],
        [wait.position for _, wait in moved],
        [wait.gpus_ahead for _, wait in moved],
        # A job that was cancelled since the snapshot keeps what it says now.
        [Job.State.QUEUED.value, Job.State.STARTING.value, Job.State.RUNNING.value],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, columns)


def _differs(job: Job, wait: Wait) -> bool:
    return _other_reason(job, wait) or (job.position, job.gpus_ahead) != (wait.position, wait.gpus_ahead)


def _other_reason(job: Job, wait: Wait) -> bool:
    stored: tuple[str, Mapping[str, object]] = (job.reason_code, job.reason_numbers)
    return stored != (wait.reason.code.value, dict(wait.reason.numbers))
