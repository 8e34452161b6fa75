"""Beat for looping tasks: it never piles messages up, and a clock that is set back does not stop it."""

import time
from typing import Any

from celery.beat import Scheduler
from django.db import InterfaceError, OperationalError, close_old_connections

from portal.core import enqueue, heartbeat


class OnceScheduler(Scheduler):  # type: ignore[misc]  # Celery ships no types
    """Sends each entry through `send_once`, timed by the monotonic clock.

    Celery's own heap orders entries by wall time, so a clock set back by two hours would silence it for as long.
    With the database away a tick is skipped; the next one heals it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._due: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def tick(self, *_args: object, **_kwargs: object) -> float:
        """Send what is due; return the seconds until the next entry is."""
        now = time.monotonic()
        for name, entry in self.schedule.items():
            if now >= self._due.get(name, 0.0):
                self._due[name] = now + entry.schedule.run_every.total_seconds()
                self._send(entry.task)
        return float(max(0.0, min(self._due.values()) - time.monotonic()))

    def _send(self, task: str) -> None:
        close_old_connections()
        try:
            heartbeat.beat("beat")
            enqueue.send_once(task)
        except (OperationalError, InterfaceError):
            self.logger.warning("database unreachable, tick of %s skipped", task)
            close_old_connections()
