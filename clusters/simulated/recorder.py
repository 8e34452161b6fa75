"""Writes Event objects; a repeated event counts up instead of making a new object."""

import uuid
from collections import OrderedDict

from clusters.simulated.clock import Clock, parse_stamp
from clusters.simulated.resources import EVENTS, Obj, Resource
from clusters.simulated.store import Key, Store, copy_of

# The real server keeps events for one hour; the number bounds memory in large worlds.
_KEEP_S = 3600.0
_KEEP = 8000


class Recorder:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # In order of their last write, oldest first: key of the event object -> what it says.
        self._order: OrderedDict[Key, tuple[str, ...]] = OrderedDict()
        self._known: dict[tuple[str, ...], Key] = {}
        for stored in sorted(store.all(EVENTS), key=lambda each: each.version):
            self._remember(stored.key, _identity(stored.object))

    def record(self, resource: Resource, obj: Obj, reason: str, message: str, component: str) -> None:
        """A Normal event."""
        self._record(resource, obj, ("Normal", reason, message), component)

    def warn(self, resource: Resource, obj: Obj, reason: str, message: str, component: str) -> None:
        self._record(resource, obj, ("Warning", reason, message), component)

    def _record(self, resource: Resource, obj: Obj, said: tuple[str, str, str], component: str) -> None:
        event = self._new(resource, obj, said, component)
        identity = _identity(event)
        key = self._known.get(identity)
        held = self._store.get(EVENTS, *key) if key else None
        if held is not None:
            event = copy_of(held)
            event["count"] += 1
            event["lastTimestamp"] = self._clock.stamp()
        self._store.put(EVENTS, event)
        self._remember((event["metadata"]["namespace"], event["metadata"]["name"]), identity)
        self._trim()

    def _new(self, resource: Resource, obj: Obj, said: tuple[str, str, str], component: str) -> Obj:
        meta, now = obj["metadata"], self._clock.stamp()
        namespace = meta.get("namespace") or "default"
        involved = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "name": meta["name"],
            "uid": meta["uid"],
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        if resource.namespaced:
            involved["namespace"] = namespace
        uid = uuid.uuid4()
        name = f"{meta['name'][:230]}.{uid.hex[:16]}"
        return {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": str(uid),
                "creationTimestamp": now,
            },
            "involvedObject": involved,
            "type": said[0],
            "reason": said[1],
            "message": said[2],
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "eventTime": None,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _remember(self, key: Key, identity: tuple[str, ...]) -> None:
        self._order[key] = identity
        self._order.move_to_end(key)
        self._known[identity] = key

    def _trim(self) -> None:
        while self._order:
            key, identity = next(iter(self._order.items()))
            held = self._store.get(EVENTS, *key)
            old = held is None or self._clock.now() - parse_stamp(held["lastTimestamp"]) > _KEEP_S
            if not old and len(self._order) <= _KEEP:
                return
            del self._order[key]
            if self._known.get(identity) == key:
                del self._known[identity]
            if held is not None:
                self._store.remove(EVENTS, *key)


def _identity(event: Obj) -> tuple[str, ...]:
    involved = event.get("involvedObject") or {}
    said = (event.get("type", ""), event.get("reason", ""), event.get("message", ""))
    return (involved.get("uid", ""), involved.get("name", ""), *said)
