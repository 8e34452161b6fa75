"""Doors for the worker: unpack, call one function. Time limits stay far below the broker's visibility time-out."""

from celery import shared_task

from jobs.dispatch import drain
from jobs.dispatch.housekeeping import keep_house
from jobs.dispatch.reconcile import reconcile_due
from jobs.engine import cycle
from portal.core import enqueue, heartbeat


@shared_task(ignore_result=True, soft_time_limit=25, time_limit=30)
def run_cycle() -> None:
    """Run one scheduling cycle; a second copy finds the lease taken and leaves."""
    enqueue.picked_up("jobs.tasks.run_cycle")
    heartbeat.beat("worker")
    cycle.run_once()


@shared_task(ignore_result=True, soft_time_limit=30, time_limit=35)
def reconcile() -> None:
    """Advance the attempts that are due by one step each."""
    enqueue.picked_up("jobs.tasks.reconcile")
    heartbeat.beat("worker")
    reconcile_due()


@shared_task(ignore_result=True, soft_time_limit=20, time_limit=25)
def note_drained_nodes() -> None:
    """Note which nodes in maintenance are empty."""
    enqueue.picked_up("jobs.tasks.note_drained_nodes")
    drain.note_drained_nodes()


@shared_task(ignore_result=True, soft_time_limit=50, time_limit=55)
def housekeeping() -> None:
    """Look for objects that nobody answers for, and for drift."""
    enqueue.picked_up("jobs.tasks.housekeeping")
    keep_house()
