"""Watch streams: resume from a version, bookmarks, the initial list, and 410 for what is too old."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from aiohttp import web

from clusters.simulated.errors import ApiError, expired, no_version
from clusters.simulated.listing import selected
from clusters.simulated.matching import Selection
from clusters.simulated.store import Change, Past, Store

# A client that reads this many events too slowly is cut off, as the real server does.
_BACKLOG = 50_000
_BOOKMARK_S = 15.0
_INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    version: str = ""
    bookmarks: bool = False
    initial_events: bool = False
    timeout_s: float = 0.0


def check_version(text: str) -> None:
    """Raises the answer to a version that is no number of 64 bits."""
    if text and not (text.isascii() and text.isdigit() and int(text) < 2**64):
        raise no_version(text)


class Watch:
    """One open stream. Events wait in memory until the client's connection takes them."""

    def __init__(self, store: Store, selection: Selection, options: WatchOptions) -> None:
        self._store = store
        self._selection = selection
        self._options = options
        self._pending: list[bytes] = []
        self._wake = asyncio.Event()
        self._closed = False
        self._unsubscribe: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Raises 500 for a version that is no number, 410 for one that the ring no longer holds."""
        version = self._options.version
        check_version(version)
        if self._options.initial_events or version in ("", "0"):
            self._send_initial()
        else:
            self._send_past(int(version))
        self._unsubscribe = self._store.subscribe(self._on_change)

    def close(self) -> None:
        if self._closed:  # an outage closes it before its own request ends
            return
        self._closed = True
        self._unsubscribe()
        self._wake.set()

    async def run(self, response: web.StreamResponse) -> None:
        """Writes events until the time is over, the client leaves or the watch is closed."""
        loop = asyncio.get_running_loop()
        # Without a wish of the client the real server picks 30 to 60 minutes.
        wished = self._options.timeout_s or random.uniform(1800, 3600)  # noqa: S311 - spreads reconnects
        end = loop.time() + wished
        bookmark = loop.time() + _BOOKMARK_S
        while not self._closed:
            if self._pending:
                batch, self._pending = self._pending, []
                await response.write(b"".join(batch))
                continue
            now = loop.time()
            if now >= end:
                return
            if now >= bookmark:
                self._bookmark({})
                bookmark = now + _BOOKMARK_S
                continue
            until = min(end, bookmark) if self._options.bookmarks else end
            await self._wait(until - now)

    async def _wait(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _on_change(self, change: Change) -> None:
        if change.resource is self._selection.resource:
            self._offer(change.past)

    def _offer(self, past: Past) -> None:
        event = event_for(self._selection, past)
        if not event:
            return
        self._pending.append(event)
        self._wake.set()
        if len(self._pending) > _BACKLOG:
            self.close()

    def _send_initial(self) -> None:
        prefix = self._selection.resource.prefix
        for stored in selected(self._store, self._selection):
            self._pending.append(_event("ADDED", prefix, stored.raw))
        if self._options.initial_events:
            self._bookmark({_INITIAL_END: "true"})

    def _send_past(self, since: int) -> None:
        newer = self._store.past(since)
        if newer is None:
            raise expired(f"too old resource version: {since} ({self._store.compacted})")
        for past in newer:
            if past.resource is self._selection.resource:
                self._offer(past)

    def _bookmark(self, annotations: dict[str, str]) -> None:
        if not self._options.bookmarks:
            return
        meta: dict[str, object] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        body = orjson.dumps({"metadata": meta})
        self._pending.append(_event("BOOKMARK", self._selection.resource.prefix, body))


def error_event(error: ApiError) -> bytes:
    return b'{"type":"ERROR","object":' + orjson.dumps(error.status()) + b"}\n"


def event_for(selection: Selection, past: Past) -> bytes:
    """What a watcher with this selection sees of a change: an object may enter or leave the selection."""
    resource = selection.resource
    now = past.type != "DELETED" and selection.matches(past.facts)
    before = past.previous is not None and selection.matches(past.previous[1])
    if past.type == "DELETED":
        return _event("DELETED", resource.prefix, past.raw) if before else b""
    if now:
        return _event("MODIFIED" if before else "ADDED", resource.prefix, past.raw)
    if before and past.previous is not None:
        # The last state that matched, under the version of the change that ended the match.
        obj = orjson.loads(past.previous[0])
        obj["metadata"]["resourceVersion"] = str(past.version)
        return _event("DELETED", resource.prefix, orjson.dumps(obj))
    return b""


def _event(kind: str, prefix: bytes, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + prefix + raw[1:] + b"}\n"
