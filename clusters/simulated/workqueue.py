"""Keys that a controller has to look at again: each once, soon or after a delay, off the caller's stack."""

import asyncio
import logging
import time
from collections.abc import Callable

from clusters.simulated.store import Key

logger = logging.getLogger(__name__)

# One turn of the loop may take this long before other work gets its turn.
_SLICE_S = 0.02


class WorkQueue:
    """Calls `work(key)` for each added key. An error is logged and the key tried again later."""

    def __init__(self, work: Callable[[Key], None], retry_s: float = 1.0) -> None:
        self._work = work
        self._retry_s = retry_s
        self._ready: dict[Key, None] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._draining = False

    def add(self, key: Key) -> None:
        self._ready[key] = None
        if not self._draining:
            self._draining = True
            asyncio.get_running_loop().call_soon(self._drain)

    def add_after(self, key: Key, seconds: float) -> None:
        """An earlier moment replaces a later one."""
        loop = asyncio.get_running_loop()
        moment = loop.time() + max(0.0, seconds)
        held = self._later.get(key)
        if held is not None and not held.cancelled() and held.when() <= moment:
            return
        if held is not None:
            held.cancel()
        self._later[key] = loop.call_at(moment, self._due, key)

    def _due(self, key: Key) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _drain(self) -> None:
        end = time.monotonic() + _SLICE_S
        while self._ready and time.monotonic() < end:
            key = next(iter(self._ready))
            del self._ready[key]
            try:
                self._work(key)
            except Exception:
                logger.exception("work on %s failed", key)
                self.add_after(key, self._retry_s)
        self._draining = bool(self._ready)
        if self._draining:
            asyncio.get_running_loop().call_soon(self._drain)
