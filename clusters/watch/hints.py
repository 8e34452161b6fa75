"""Tells the workers that there is news, from a thread of its own: a broker that is slow must not slow the mirror."""

import threading
from collections.abc import Callable, Iterable

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from portal.core.enqueue import send_once

log = structlog.get_logger(__name__)

RECONCILE = "jobs.tasks.reconcile"
RUN_CYCLE = "jobs.tasks.run_cycle"


class Hints(threading.Thread):
    """Sends each task that was asked for, once however often it was asked meanwhile. A lost hint costs one beat."""

    def __init__(self, send: Callable[[str], object] = send_once) -> None:
        super().__init__(name="hints", daemon=True)
        self._send = send
        self._wanted: set[str] = set()
        self._asked = threading.Condition()
        self._stopping = False

    def ask(self, tasks: Iterable[str]) -> None:
        """Ask for these tasks; returns at once."""
        with self._asked:
            self._wanted |= set(tasks)
            self._asked.notify()

    def run(self) -> None:
        """Send until stopped."""
        while wanted := self._take():
            for task in sorted(wanted):
                self._try(task)
        connection.close()

    def stop(self) -> None:
        """End soon; what was not sent yet is left to the next beat."""
        with self._asked:
            self._stopping = True
            self._asked.notify()

    def _take(self) -> set[str]:
        """Wait for something to send; empty once stopped."""
        with self._asked:
            self._asked.wait_for(lambda: bool(self._wanted) or self._stopping)
            taken, self._wanted = self._wanted, set()
            return set() if self._stopping else taken

    def _try(self, task: str) -> None:
        try:
            close_old_connections()
            self._send(task)
        except (OperationalError, InterfaceError) as error:
            log.warning("hint_lost", task=task, error=str(error).strip())
            connection.close()
