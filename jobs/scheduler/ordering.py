"""Who is looked at first: higher priority, then earlier submission, then identifier."""

from collections.abc import Iterable

from jobs.scheduler.types import Workload


def in_order(workloads: Iterable[Workload]) -> list[Workload]:
    """Sort the waiting workloads; the identifier makes the order total."""
    return sorted(workloads, key=lambda workload: (-workload.priority, workload.submitted_at, workload.id))
