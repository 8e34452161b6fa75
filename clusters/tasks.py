"""Doors for the worker: unpack, call one function."""

from celery import shared_task

from clusters.services.housekeeping import prune
from portal.core import clock, enqueue


@shared_task(ignore_result=True, soft_time_limit=25, time_limit=30)
def housekeeping() -> None:
    """Drop rows that nothing needs any more."""
    enqueue.picked_up("clusters.tasks.housekeeping")
    prune(clock.now())
