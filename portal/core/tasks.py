"""Doors for the worker: unpack, call one function."""

from celery import shared_task

from portal.core import clock, enqueue, housekeeping


@shared_task(ignore_result=True, soft_time_limit=25, time_limit=30)
def forget() -> None:
    """Drop stored answers and sessions that are over."""
    enqueue.picked_up("portal.core.tasks.forget")
    housekeeping.prune(clock.now())
