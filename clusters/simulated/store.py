"""All objects, one counter of versions, and the ring of past changes that watches resume from.

A stored object is never changed in place: a writer takes `copy_of`, changes the copy and hands it to `put`.
Objects are held without `kind` and `apiVersion`; both are put in front when an object leaves the server.
"""

import bisect
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from clusters.simulated.resources import PODS, RESOURCES, Obj, Resource

Key = tuple[str, str]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Stored:
    object: Obj
    raw: bytes
    version: int

    @property
    def key(self) -> Key:
        return key_of(self.object)


@dataclass(frozen=True, slots=True)
class Change:
    type: ChangeType
    resource: Resource
    stored: Stored
    previous: Stored | None
    past: "Past"

    @property
    def object(self) -> Obj:
        return self.stored.object


@dataclass(frozen=True, slots=True)
class Past:
    """What the ring keeps of a change: bytes and the facts that selectors look at, not the whole object."""

    type: ChangeType
    resource: Resource
    version: int
    raw: bytes
    facts: "Facts"
    previous: tuple[bytes, "Facts"] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The part of an object that label and field selectors can ask for."""

    name: str
    namespace: str
    labels: dict[str, str]
    fields: dict[str, str]


def key_of(obj: Obj) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def copy_of(obj: Obj) -> Obj:
    """A deep copy; much faster than `copy.deepcopy` for JSON."""
    copied: Obj = orjson.loads(orjson.dumps(obj))
    return copied


def facts_of(resource: Resource, obj: Obj) -> Facts:
    meta = obj["metadata"]
    return Facts(meta["name"], meta.get("namespace", ""), meta.get("labels") or {}, _fields(resource, obj))


class Store:
    """Holds the objects. Listeners are called inside `put` and `remove`, after the change is visible."""

    def __init__(self, history: int = 10_000) -> None:
        # Versions start at the time in milliseconds: after a restart without state no old one looks valid.
        self.version = int(time.time() * 1000)
        self.compacted = self.version
        self._objects: dict[Resource, dict[Key, Stored]] = {resource: {} for resource in RESOURCES}
        self._owned: dict[str, set[tuple[Resource, Key]]] = {}
        self._on_node: dict[str, set[Key]] = {}
        self._ring: deque[Past] = deque()
        self._history = history
        self._listeners: list[Callable[[Change], None]] = []

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Calls `listener` for every change from now on; the answer ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self._objects[resource].get((namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        stored = self._objects[resource].get((namespace, name))
        return stored.object if stored else None

    def all(self, resource: Resource) -> Iterable[Stored]:
        return list(self._objects[resource].values())

    def count(self, resource: Resource, namespace: str) -> int:
        return sum(1 for held, _ in self._objects[resource] if held == namespace)

    def in_order(self, resource: Resource, namespace: str = "", after: Key | None = None) -> Iterator[Stored]:
        """By namespace and name, as the real store keeps its keys."""
        held = self._objects[resource]
        keys = sorted(key for key in held if not namespace or key[0] == namespace)
        start = bisect.bisect_right(keys, after) if after else 0
        return (held[key] for key in keys[start:])

    def owned_by(self, uid: str, resource: Resource | None = None) -> list[tuple[Resource, Obj]]:
        """Objects with an owner reference to `uid`."""
        owned = self._owned.get(uid, ())
        found = [(held, self._objects[held][key].object) for held, key in owned]
        return [(held, obj) for held, obj in found if resource is None or held is resource]

    def pods_on(self, node: str) -> list[Obj]:
        return [self._objects[PODS][key].object for key in self._on_node.get(node, ())]

    def put(self, resource: Resource, obj: Obj) -> Obj:
        """Stores a new or changed object under a new version and tells the listeners."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        stored = Stored(obj, orjson.dumps(obj), self.version)
        previous = self._objects[resource].get(stored.key)
        self._objects[resource][stored.key] = stored
        self._index(resource, previous, stored)
        self._publish("MODIFIED" if previous else "ADDED", resource, stored, previous)
        return obj

    def remove(self, resource: Resource, namespace: str, name: str) -> Obj:
        previous = self._objects[resource].pop((namespace, name))
        self.version += 1
        meta = {**previous.object["metadata"], "resourceVersion": str(self.version)}
        gone = {**previous.object, "metadata": meta}
        self._index(resource, previous, None)
        self._publish("DELETED", resource, Stored(gone, orjson.dumps(gone), self.version), previous)
        return gone

    def past(self, since: int) -> list[Past] | None:
        """Changes after version `since`; None if the ring no longer reaches back that far."""
        if since < self.compacted:
            return None
        newer: list[Past] = []
        for past in reversed(self._ring):
            if past.version <= since:
                break
            newer.append(past)
        return newer[::-1]

    def compact(self) -> None:
        """Forgets all past changes, so that every older watch and continue token is too old."""
        self._ring.clear()
        self.version += 1
        self.compacted = self.version

    def dump(self) -> dict[str, Any]:
        kinds = {
            resource.qualified: [orjson.Fragment(stored.raw) for stored in held.values()]
            for resource, held in self._objects.items()
        }
        return {"version": self.version, "objects": kinds}

    def load(self, dumped: dict[str, Any]) -> None:
        """Takes over a dumped store. Older versions are too old, because writes after the dump are lost."""
        by_name = {resource.qualified: resource for resource in RESOURCES}
        for qualified, objects in dumped["objects"].items():
            resource = by_name[qualified]
            for obj in objects:
                stored = Stored(obj, orjson.dumps(obj), int(obj["metadata"]["resourceVersion"]))
                self._objects[resource][stored.key] = stored
                self._index(resource, None, stored)
        self.version = max(self.version, dumped["version"] + 1)
        self.compacted = self.version

    def _publish(self, kind: ChangeType, resource: Resource, stored: Stored, previous: Stored | None) -> None:
        before = (previous.raw, facts_of(resource, previous.object)) if previous else None
        facts = facts_of(resource, stored.object)
        past = Past(kind, resource, stored.version, stored.raw, facts, before)
        change = Change(kind, resource, stored, previous, past)
        self._ring.append(past)
        while len(self._ring) > self._history:
            self.compacted = self._ring.popleft().version
        for listener in tuple(self._listeners):
            listener(change)

    def _index(self, resource: Resource, previous: Stored | None, stored: Stored | None) -> None:
        before = _owner_uids(previous)
        after = _owner_uids(stored)
        key = (stored or previous).key  # type: ignore[union-attr]
        for uid in before - after:
            self._owned[uid].discard((resource, key))
            if not self._owned[uid]:
                del self._owned[uid]
        for uid in after - before:
            self._owned.setdefault(uid, set()).add((resource, key))
        if resource is PODS:
            self._index_node(_node_of(previous), _node_of(stored), key)

    def _index_node(self, before: str, after: str, key: Key) -> None:
        if before and before != after:
            self._on_node[before].discard(key)
        if after and before != after:
            self._on_node.setdefault(after, set()).add(key)


def _owner_uids(stored: Stored | None) -> set[str]:
    if stored is None:
        return set()
    return {owner["uid"] for owner in stored.object["metadata"].get("ownerReferences") or ()}


def _node_of(stored: Stored | None) -> str:
    return (stored.object["spec"].get("nodeName") or "") if stored else ""


def _fields(resource: Resource, obj: Obj) -> dict[str, str]:
    meta = obj["metadata"]
    fields = {"metadata.name": meta["name"], "metadata.namespace": meta.get("namespace", "")}
    if resource is PODS:
        spec = obj["spec"]
        fields["spec.nodeName"] = spec.get("nodeName") or ""
        fields["spec.restartPolicy"] = spec.get("restartPolicy") or ""
        fields["spec.schedulerName"] = spec.get("schedulerName") or ""
        fields["status.phase"] = (obj.get("status") or {}).get("phase") or ""
    elif resource.kind == "Event":
        involved = obj.get("involvedObject") or {}
        for part in ("kind", "namespace", "name", "uid", "fieldPath"):
            fields[f"involvedObject.{part}"] = involved.get(part) or ""
        fields["reason"] = obj.get("reason") or ""
        fields["type"] = obj.get("type") or ""
    elif resource.kind == "Node":
        fields["spec.unschedulable"] = "true" if obj["spec"].get("unschedulable") else "false"
    elif resource.kind == "Job":
        fields["status.successful"] = str((obj.get("status") or {}).get("succeeded") or 0)
    elif resource.kind == "Namespace":
        fields["status.phase"] = (obj.get("status") or {}).get("phase") or ""
    return fields
