"""The embedded broker: pgmq, in which consumers alone make the trigger that wakes them, one at a time.

The transport as it comes makes that trigger whenever anybody declares a queue, senders included: each time it drops the
old one, which locks the queue's table, and of two processes that do so at once one fails.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, pgmq

_TRIGGERS = 7_301_906_253  # any number that no other advisory lock of this database has


class Channel(pgmq.Channel):  # type: ignore[misc]  # kombu ships no types
    """A channel whose senders leave triggers alone."""

    def _new_queue(self, queue: str, **_options: Any) -> None:
        self.pgmq.create_queue(self._queue_name(queue))

    def _maybe_enable_notify(self, queue: str, queue_name: str | None = None) -> None:
        name = queue_name or self._queue_name(queue)
        with self.pgmq.pool.connection() as conn, conn.transaction():
            conn.execute("SELECT pg_advisory_xact_lock(%s)", (_TRIGGERS,))
            self.pgmq.enable_notify(name, throttle_interval_ms=self.notify_throttle_interval_ms, conn=conn)
        self.connection._register_notify_queue(name)  # noqa: SLF001 -- as the method that this one stands for


class Transport(pgmq.Transport):  # type: ignore[misc]
    """What `pgmq://` stands for here."""

    Channel = Channel


def install() -> None:
    """Make `pgmq://` mean this transport in the whole process."""
    TRANSPORT_ALIASES["pgmq"] = f"{__name__}:Transport"
