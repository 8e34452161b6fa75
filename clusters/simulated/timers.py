"""Named timers on wall-clock deadlines that can be saved and armed again after a restart."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusters.simulated.clock import Clock
from clusters.simulated.store import Key


@dataclass(frozen=True, slots=True)
class Due:
    """What is due: an action on one container of one pod (container empty: the pod itself)."""

    key: Key
    uid: str
    container: str
    action: str


class Timers:
    def __init__(self, clock: Clock, fire: Callable[[Due], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._armed: dict[Due, tuple[float, asyncio.TimerHandle]] = {}
        self._by_uid: dict[str, set[Due]] = {}

    def has(self, due: Due) -> bool:
        return due in self._armed

    def arm(self, due: Due, simulated_s: float) -> None:
        """Replaces an earlier timer of the same name."""
        self._arm_real(due, max(0.0, self._clock.real(simulated_s)))

    def cancel(self, uid: str) -> None:
        for due in self._by_uid.pop(uid, set()):
            self._armed.pop(due)[1].cancel()

    def dump(self) -> list[list[Any]]:
        """Rows of namespace, name, uid, container, action, remaining real seconds."""
        now = self._clock.now()
        return [
            [*due.key, due.uid, due.container, due.action, max(0.0, deadline - now)]
            for due, (deadline, _) in self._armed.items()
        ]

    def load(self, rows: list[list[Any]]) -> None:
        """Time stood still while the cluster was stopped: what remained then remains now."""
        for namespace, name, uid, container, action, remaining in rows:
            self._arm_real(Due((namespace, name), uid, container, action), remaining)

    def _arm_real(self, due: Due, seconds: float) -> None:
        if due in self._armed:
            self._armed[due][1].cancel()
        handle = asyncio.get_running_loop().call_later(seconds, self._expire, due)
        self._armed[due] = (self._clock.now() + seconds, handle)
        self._by_uid.setdefault(due.uid, set()).add(due)

    def _expire(self, due: Due) -> None:
        del self._armed[due]
        held = self._by_uid[due.uid]
        held.discard(due)
        if not held:
            del self._by_uid[due.uid]
        self._fire(due)
