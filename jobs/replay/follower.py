"""Follows the watches of one cluster in the order of their resource versions, and judges every event."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable

from clusters.k8s.documents import WHOLE, unmanaged
from clusters.k8s.gateway import Gateway
from clusters.k8s.values import GatewayError, JsonObject
from jobs.simulator.invariants import Referee, Violation

KINDS = ("nodes", "jobs", "statefulsets", "pods")
# The streams of one server differ by less; only the order within it has to be restored.
HOLD_BACK_S = 0.5
WATCH_S = 300
RETRY_S = 0.5
TICK_S = 0.1
Note = Callable[[str, str, JsonObject], None]
CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


class Follower:
    """Reads from `start` until `stop`. `violations` and `events` grow meanwhile; `note` is told of every event."""

    def __init__(self, gateway: Gateway, referee: Referee, *, note: Note | None = None) -> None:
        self.violations: list[Violation] = []
        self.events = 0
        self._gateway, self._referee, self._note = gateway, referee, note
        self._waiting: list[tuple[int, int, float, str, str, JsonObject]] = []
        self._number = itertools.count()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._judge = threading.Thread(target=self._keep_judging, name="judge", daemon=True)
        self._listed = [threading.Event() for _ in KINDS]

    def start(self) -> None:
        """Start reading; return once all kinds were listed, so that nothing that comes now is missed."""
        for kind, listed in zip(KINDS, self._listed, strict=True):
            threading.Thread(target=self._follow, args=(kind, listed), name=f"follow-{kind}", daemon=True).start()
        self._judge.start()
        for listed in self._listed:
            listed.wait()

    def stop(self) -> None:
        """Judge what came so far and end."""
        time.sleep(2 * HOLD_BACK_S)
        self._stopping.set()
        self._judge.join()

    def _follow(self, kind: str, listed: threading.Event) -> None:
        known: dict[str, JsonObject] = {}
        while not self._stopping.is_set():
            try:
                version = self._list(kind, known)
                listed.set()
                self._watch(kind, known, version)
            except GatewayError:
                self._stopping.wait(RETRY_S)

    def _list(self, kind: str, known: dict[str, JsonObject]) -> str:
        found = self._gateway.list(kind)
        present = {item["metadata"]["uid"]: item for item in found["items"]}
        version = found["metadata"]["resourceVersion"]
        for uid in known.keys() - present.keys():
            body = known.pop(uid)
            # It went while nobody watched; the list is the first to tell.
            self._put(kind, "DELETED", {**body, "metadata": {**body["metadata"], "resourceVersion": version}})
        for uid, item in present.items():
            if uid not in known or known[uid]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                known[uid] = item
                self._put(kind, "ADDED", item)
        return str(version)

    def _watch(self, kind: str, known: dict[str, JsonObject], version: str) -> None:
        for event in self._gateway.watch(kind, WHOLE, resource_version=version, timeout_s=WATCH_S):
            if self._stopping.is_set():
                return
            change, body = event.type, unmanaged(event.object)
            if change not in CHANGES:
                continue
            if change == "DELETED":
                known.pop(body["metadata"]["uid"], None)
            else:
                known[body["metadata"]["uid"]] = body
            self._put(kind, change, body)

    def _put(self, kind: str, change: str, body: JsonObject) -> None:
        version = int(body["metadata"]["resourceVersion"])
        with self._lock:
            heapq.heappush(self._waiting, (version, next(self._number), time.monotonic(), kind, change, body))

    def _keep_judging(self) -> None:
        while not self._stopping.wait(TICK_S):
            self._take(time.monotonic() - HOLD_BACK_S)
        self._take(float("inf"))

    def _take(self, until_s: float) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._waiting[0][2] > until_s:
                    break
                _version, _number, at_s, kind, change, body = heapq.heappop(self._waiting)
            self.events += 1
            if self._note:
                self._note(kind, change, body)
            self.violations += self._referee.see(kind, change, body, at_s)
        self.violations += self._referee.overdue(time.monotonic())
