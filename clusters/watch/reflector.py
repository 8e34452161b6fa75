"""Follows one kind on one cluster, for ever: list, then watch, and list again when the past is lost."""

import random
import threading
import time
from dataclasses import dataclass
from functools import partial

import structlog

from clusters.k8s.gateway import Gateway, WatchStream
from clusters.k8s.values import GatewayError, Gone, Unreachable
from clusters.watch.inbox import Inbox
from clusters.watch.reading import FORMS, Reader
from clusters.watch.shapes import Document

log = structlog.get_logger(__name__)

WATCH_S = 60
SHORTEST_WATCH_S = 1.0
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


@dataclass(frozen=True, slots=True)
class Source:
    """A kind to follow. A cluster counts as heard only while all of its essential sources are live."""

    kind: str
    labels: str = ""
    fields: str = ""
    is_essential: bool = True


class Reflector(threading.Thread):
    """Fills the inbox with lists and changes of one source. It touches no database."""

    def __init__(self, gateway: Gateway, source: Source, reader: Reader, inbox: Inbox, *, cluster: str) -> None:
        super().__init__(name=f"reflect-{cluster}-{source.kind}", daemon=True)
        self.source = source
        self.is_live = False
        self.error = ""
        self._gateway = gateway
        self._reader = reader
        self._inbox = inbox
        self._log = log.bind(cluster=cluster, kind=source.kind)
        self._version = ""
        self._failures = 0
        self._stopping = threading.Event()
        self._stream: WatchStream[Document] | None = None

    def run(self) -> None:
        """Reflect until stopped; no error of the cluster ends it."""
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._follow()
            except Gone:
                self._version, self.is_live = "", False
                self._pause("the version expired")
            except GatewayError as error:
                self._fail(error.message)
            except Exception as error:  # the thread must outlive an answer that nobody thought of
                self._version = ""
                self._log.exception("reflector_error")
                self._fail(f"{type(error).__name__} while reading {self.source.kind}")

    def stop(self) -> None:
        """End soon, also out of a silent stream."""
        self._stopping.set()
        if stream := self._stream:
            stream.close()

    def _list(self) -> None:
        source = self.source
        # The version of the list itself: those of its items are older, in no order.
        items, version = self._gateway.read_list(
            source.kind,
            FORMS[source.kind],
            partial(self._reader.read, source.kind),
            labels=source.labels,
            fields=source.fields,
        )
        if not version:
            raise Unreachable(f"the list of {source.kind} has no version")
        self._inbox.put_list(source.kind, items)
        self._version = version

    def _follow(self) -> None:
        source = self.source
        stream = self._stream = self._gateway.watch(
            source.kind,
            FORMS[source.kind],
            labels=source.labels,
            fields=source.fields,
            resource_version=self._version,
            # Spread, so that the streams of a cluster do not all end at once.
            timeout_s=random.randint(WATCH_S // 2, WATCH_S),  # noqa: S311 -- not a secret
        )
        self._recover()
        started = time.monotonic()
        try:
            for event in stream if not self._stopping.is_set() else ():
                self._failures = 0
                if event.type in _CHANGES:
                    reading = self._reader.read(source.kind, event.object)
                    self._inbox.put_event(source.kind, event.type, reading)
                # Bookmarks carry nothing but a newer version to resume from.
                self._version = event.object.metadata.resource_version or self._version
        finally:
            stream.close()
            self._stream = None
        if time.monotonic() - started < SHORTEST_WATCH_S:
            self._pause("the stream ended at once")

    def _recover(self) -> None:
        if self.error:
            self._log.info("reflector_recovered", after=self.error)
        self.error = ""
        self.is_live = True

    def _fail(self, message: str) -> None:
        if self._stopping.is_set():
            return
        if message != self.error:
            self._log.warning("reflector_failed", error=message)
        self.error = message[:280]
        self.is_live = False
        self._pause(message)

    def _pause(self, why: str) -> None:
        """Wait longer after each failure in a row; a first expired version costs nothing."""
        delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** min(self._failures, 10))
        self._failures += 1
        self._log.debug("reflector_pause", why=why, delay_s=delay_s)
        self._stopping.wait(delay_s * random.uniform(0.7, 1.0))  # noqa: S311 -- not a secret
