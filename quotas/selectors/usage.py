"""Reads of the counters: what is reserved, and which nodes of the tree a reservation counts in."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection

from quotas.models import QuotaUsage
from quotas.policy.limits import MAX_DEPTH

_COHORTS_ABOVE = """
WITH RECURSIVE above AS (
    SELECT cohort.id, cohort.parent_id, 1 AS depth
    FROM quotas_queue queue JOIN quotas_cohort cohort ON cohort.id = queue.cohort_id
    WHERE queue.id = %s
    UNION ALL
    SELECT cohort.id, cohort.parent_id, above.depth + 1
    FROM above JOIN quotas_cohort cohort ON cohort.id = above.parent_id
    WHERE above.depth < %s
)
SELECT id FROM above ORDER BY depth
"""


@dataclass(frozen=True, slots=True)
class Counter:
    """Names one counter: of one queue or one cohort (the other is None), for one flavor."""

    queue_id: int | None
    cohort_id: int | None
    flavor_id: int


def cohorts_above(queue_id: int) -> list[int]:
    """Return the ids of the cohorts that a queue counts in, nearest first; empty if there is no such queue."""
    with connection.cursor() as cursor:
        # A circle cannot be stored by the services; the limit keeps even a hand-made one from running for ever.
        cursor.execute(_COHORTS_ABOVE, [queue_id, MAX_DEPTH])
        return [row[0] for row in cursor.fetchall()]


def counters() -> Mapping[Counter, int]:
    """Return whole GPUs reserved by counter; a counter that was never used has no entry."""
    rows = QuotaUsage.objects.values_list("queue_id", "cohort_id", "flavor_id", "used")
    return {Counter(queue, cohort, flavor): used for queue, cohort, flavor, used in rows}
