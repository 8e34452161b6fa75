"""What a cluster told while something was measured: every watch event with the moment of its arrival.

with Tape(gateway) as tape:
    ...
    tape.until_running(1000, timeout_s=120)
tape.last_bound_s() - tape.first_job_s()
tape.violations()    # judged only now, so that judging costs nothing beside what is measured
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from clusters.k8s.documents import WHOLE
from clusters.k8s.gateway import Gateway, WatchStream
from clusters.k8s.values import GatewayError, JsonObject
from jobs.simulator.invariants import Referee, Violation

KINDS = ("nodes", "jobs", "pods")
WATCH_S = 900
BIND_S = 60.0  # T2 of the portal
DOMAIN = "muster.internal"
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, order=True)
class Told:
    """One event. Those of one server are ordered by their versions, whatever stream they came by."""

    version: int
    at_s: float
    kind: str
    change: str
    body: Any


class Tape:
    """Records from `with` on; pods that are there before are no part of what is measured."""

    def __init__(self, gateway: Gateway) -> None:
        self.told: list[Told] = []
        self.bound: dict[str, float] = {}
        self.running: set[str] = set()
        self._gateway = gateway
        self._streams: list[WatchStream[JsonObject]] = []
        self._threads: list[threading.Thread] = []
        self._error = ""
        self._is_over = False

    def __enter__(self) -> Self:
        for kind in KINDS:
            listed = self._gateway.list(kind)
            version = listed["metadata"]["resourceVersion"]
            self.told += [
                Told(int(body["metadata"]["resourceVersion"]), time.monotonic(), kind, "ADDED", body)
                for body in listed["items"]
            ]
            stream = self._gateway.watch(kind, WHOLE, resource_version=version, timeout_s=WATCH_S)
            self._streams.append(stream)
            thread = threading.Thread(target=self._record, args=(kind, stream), name=f"tape-{kind}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._began = len(self.told)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        for stream in self._streams:
            stream.close()
        for thread in self._threads:
            thread.join(5)

    def until_running(self, count: int, *, timeout_s: float) -> None:
        """Wait until so many pods have got their nodes, and run there."""
        end_s = time.monotonic() + timeout_s
        while len(self.running) < count:
            if self._error or time.monotonic() > end_s:
                done = f"{len(self.bound)} of {count} pods were bound and {len(self.running)} run"
                raise AssertionError(f"{done} after {timeout_s:.0f} s {self._error}")
            time.sleep(_POLL_S)

    def first_job_s(self) -> float:
        """When the first new Job was seen."""
        return min(each.at_s for each in self.told[self._began :] if each.kind == "jobs")

    def last_bound_s(self) -> float:
        """When the last pod was seen to have its node."""
        return max(self.bound.values())

    def violations(self) -> list[Violation]:
        """Judge every event by the invariants, in the server's order."""
        return judged(self.told)

    def _record(self, kind: str, stream: WatchStream[JsonObject]) -> None:
        try:
            for event in stream:
                if event.type == "BOOKMARK":
                    continue
                at_s, body = time.monotonic(), event.object
                version = int(body["metadata"]["resourceVersion"])
                self.told.append(Told(version, at_s, kind, event.type, body))
                if kind == "pods":
                    self._note(body, at_s)
        except GatewayError as error:
            self._error = str(error)
        if not self._is_over:
            self._error = self._error or f"the stream of {kind} ended"

    def _note(self, body: JsonObject, at_s: float) -> None:
        uid = body["metadata"]["uid"]
        if body["spec"].get("nodeName"):
            self.bound.setdefault(uid, at_s)
        if body["status"].get("phase") == "Running":
            self.running.add(uid)


def judged(told: Iterable[Told]) -> list[Violation]:
    """Return what broke a rule, a gang that stayed bound in part among it."""
    referee = Referee(domain=DOMAIN, bind_s=BIND_S)
    found: list[Violation] = []
    at_s = 0.0
    for each in sorted(told, key=lambda event: event.version):
        # Streams differ by a little; the clock of the judgement never goes back.
        at_s = max(at_s, each.at_s)
        found += referee.see(each.kind, each.change, each.body, at_s)
    return found + referee.overdue(at_s)
