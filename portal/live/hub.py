"""One LISTEN connection for a whole process, fanned out to every open stream.

A stream keeps only its newest notices: a reader that is too slow loses old ones, never memory. Notices carry no data,
so a lost one costs nothing but a read that the next one triggers.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
import structlog
from django.conf import settings

from portal.core.publish import CHANNEL

log = structlog.get_logger(__name__)

MOST_WAITING = 200
RECONNECT_S = 1.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something changed: of which topic, and which object of it."""

    topic: str
    id: str
    version: int


class Subscription:
    """What one open page waits for. Notices of one object collapse into the newest."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._waiting: OrderedDict[tuple[str, str], Notice] = OrderedDict()
        self._has_some = asyncio.Event()

    def put(self, notice: Notice) -> None:
        """Take a notice in; the oldest goes when there are too many."""
        key = (notice.topic, notice.id)
        self._waiting.pop(key, None)
        self._waiting[key] = notice
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        self._has_some.set()

    async def take(self, timeout_s: float) -> list[Notice]:
        """Return all that wait, or an empty list after the time-out."""
        try:
            await asyncio.wait_for(self._has_some.wait(), timeout_s)
        except TimeoutError:
            return []
        self._has_some.clear()
        notices = list(self._waiting.values())
        self._waiting.clear()
        return notices


class Hub:
    """Listens while somebody subscribes."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        self._listener: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def subscribe(self, topics: Iterable[str]) -> AsyncIterator[Subscription]:
        """Hear of the topics until the block ends."""
        subscription = Subscription(topics)
        self._subscriptions.add(subscription)
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            if not self._subscriptions and self._listener is not None:
                self._listener.cancel()
                self._listener = None

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except psycopg.Error as error:
                log.warning("live_connection_lost", error=str(error))
            # Pages read again after a gap, so nothing is lost but a moment.
            self._tell_all_to_read()
            await asyncio.sleep(RECONNECT_S)

    async def _listen_once(self) -> None:
        connection = await psycopg.AsyncConnection.connect(settings.DATABASE_DSN, autocommit=True)
        async with connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            async for message in connection.notifies():
                self._spread(message.payload)

    def _spread(self, payload: str) -> None:
        notice = Notice(**json.loads(payload))
        for subscription in self._subscriptions:
            if notice.topic in subscription.topics:
                subscription.put(notice)

    def _tell_all_to_read(self) -> None:
        for subscription in self._subscriptions:
            for topic in subscription.topics:
                subscription.put(Notice(topic, "", 0))


hub = Hub()
