"""The demo's steady load, as a task."""

from celery import shared_task

from portal.core import enqueue
from portal.seed.workload import refill


@shared_task(ignore_result=True, soft_time_limit=25, time_limit=30)
def refill_demo() -> None:
    """Keep the demo alive; beat sends this in a demo only."""
    enqueue.picked_up("portal.seed.tasks.refill_demo")
    refill()
