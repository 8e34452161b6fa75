"""What the streams of one cluster brought and nobody wrote down yet. Bounded by the number of objects."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusters.watch.reading import Reading

Key = tuple[str, str]


@dataclass(slots=True)
class Batch:
    """Whole lists by kind, then the last event of each object by (kind, uid): its type and what it left."""

    lists: dict[str, list[Any]] = field(default_factory=dict)
    events: dict[Key, tuple[str, Any]] = field(default_factory=dict)

    def add_list(self, kind: str, items: Sequence[Reading]) -> None:
        """Take the whole truth about a kind: what came before it is out of date."""
        self.lists[kind] = list(items)
        for key in [key for key in self.events if key[0] == kind]:
            del self.events[key]

    def add_event(self, kind: str, verb: str, reading: Reading) -> None:
        """Take one change; it replaces what the same object said before."""
        self.events[kind, reading.uid] = (verb, reading)

    def add_newer(self, newer: "Batch") -> None:
        """Take all that came after this batch."""
        for kind, items in newer.lists.items():
            self.add_list(kind, items)
        self.events.update(newer.events)

    def of(self, kind: str) -> Mapping[str, tuple[str, Any]]:
        """Return the last events of one kind by uid."""
        return {uid: event for (each, uid), event in self.events.items() if each == kind}

    def __bool__(self) -> bool:
        return bool(self.lists or self.events)


class Inbox:
    """A batch that many threads fill and one empties."""

    def __init__(self) -> None:
        self._batch = Batch()
        self._filled = threading.Condition()
        self._is_closed = False

    def put_list(self, kind: str, items: Sequence[Reading]) -> None:
        """Add a whole list."""
        with self._filled:
            self._batch.add_list(kind, items)
            self._filled.notify()

    def put_event(self, kind: str, verb: str, reading: Reading) -> None:
        """Add one change."""
        with self._filled:
            self._batch.add_event(kind, verb, reading)
            self._filled.notify()

    def wait(self, timeout_s: float) -> bool:
        """Wait until something is there; False after the time-out, and at once when closed."""
        with self._filled:
            self._filled.wait_for(lambda: bool(self._batch) or self._is_closed, timeout_s)
            return bool(self._batch)

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._filled:
            self._is_closed = True
            self._filled.notify()

    def take(self) -> Batch:
        """Return what has come and start anew."""
        with self._filled:
            taken, self._batch = self._batch, Batch()
            return taken
