"""Doors for the worker: unpack, call one function."""

from celery import shared_task

from portal.core import enqueue
from quotas.sync.rounds import sync_all


@shared_task(ignore_result=True, soft_time_limit=50, time_limit=55)
def sync_spaces() -> None:
    """Look at the teams' spaces on all clusters, and apply what is to be applied."""
    enqueue.picked_up("quotas.tasks.sync_spaces")
    sync_all()
