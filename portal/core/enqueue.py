"""The way up to the workers: a task by its name, after commit.

Truth is in Postgres, so a message is only a hint, and one hint is enough: of a looping task at most one
message waits in the broker, whoever asks (a service, the watcher, beat) and even while no worker runs.
"""

from collections.abc import Mapping
from datetime import timedelta

import psycopg
import structlog
from amqp.exceptions import ChannelError
from celery import current_app
from django.db import transaction
from django.db.models import Q
from kombu import Connection
from kombu.exceptions import OperationalError

from portal.core import clock
from portal.core.models import OutstandingTask

log = structlog.get_logger(__name__)

# Each looping task has a queue of its own, so that the depth of the queue tells whether its message still waits.
LOOPS: Mapping[str, str] = {
    "jobs.tasks.run_cycle": "cycle",
    "jobs.tasks.reconcile": "reconcile",
    "jobs.tasks.housekeeping": "upkeep",
    "jobs.tasks.note_drained_nodes": "maintenance",
    "clusters.tasks.housekeeping": "housekeeping",
    "quotas.tasks.sync_spaces": "spaces",
    "portal.core.tasks.forget": "forget",
    "portal.seed.tasks.refill_demo": "demo",
}
BROKER_TIMEOUT_S = 2
# After this long without being picked up a message may be lost: look into the queue before sending another.
DOUBT_AFTER = timedelta(seconds=20)


def enqueue(task: str) -> None:
    """Ask for a run of a looping task once the current transaction commits."""
    transaction.on_commit(lambda: send_once(task))


def send_once(task: str) -> bool:
    """Send a message unless one waits already. Return whether one was sent; a broker that is down is not an error."""
    if not _claim(task):
        return False
    try:
        return _send(task)
    except (OperationalError, OSError) as error:
        # The next beat tries again: nothing is lost, since the rows hold what is wanted.
        log.warning("broker_unreachable", task=task, error=str(error))
        picked_up(task)
        return False


def _send(task: str) -> bool:
    with current_app.producer_or_acquire() as producer:
        connection = producer.connection.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_S)
        if _waiting(LOOPS[task], connection):
            # Picked up by a worker that ended before it could say so to the broker: it will be delivered again.
            # Seldom it is one that is being taken at this moment; then the next beat asks again.
            picked_up(task)
            return False
        current_app.send_task(task, queue=LOOPS[task], expires=60, retry=False, producer=producer)
    return True


def picked_up(task: str) -> None:
    """Say that the waiting message was taken; what happens from now on needs a new one."""
    OutstandingTask.objects.filter(name=task).update(sent_at=None)


def is_broker_reachable() -> bool:
    """Whether the broker accepts a connection."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_S)
    except (OperationalError, OSError, psycopg.Error):  # the last: a database without the queue's own schema
        return False
    return True


def _claim(task: str) -> bool:
    now = clock.now()
    rows = OutstandingTask.objects.filter(name=task)
    if rows.filter(sent_at__isnull=True).update(sent_at=now):
        return True
    if not rows.exists():
        return OutstandingTask.objects.get_or_create(name=task, defaults={"sent_at": now})[1]
    # Sent after now: before the clock was set back, so nobody knows how long ago.
    doubtful = rows.filter(Q(sent_at__lte=now - DOUBT_AFTER) | Q(sent_at__gt=now + DOUBT_AFTER))
    return bool(doubtful.update(sent_at=now))


def _waiting(queue: str, connection: Connection) -> int:
    """Return how many messages the broker holds in a queue, also those that a worker has taken and not settled."""
    try:
        with connection.channel() as channel:  # of its own: a broker may close it over a queue that was never made
            return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except ChannelError:
        return 0
