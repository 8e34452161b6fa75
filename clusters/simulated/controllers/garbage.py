"""Owner garbage collection, foreground and orphan deletion, namespace clean-up, claims, quota figures."""

from collections.abc import Callable

from clusters.simulated.admission import refresh_quotas
from clusters.simulated.api import FOREGROUND, ORPHAN, Deletion
from clusters.simulated.resources import (
    BY_KIND,
    CLAIMS,
    EVENTS,
    NAMESPACES,
    PODS,
    QUOTAS,
    RESOURCES,
    Obj,
    Resource,
)
from clusters.simulated.store import Change, Key
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

# The real controller waits so long before it touches a namespace, so that every API server knows of its end.
NAMESPACE_GRACE_S = 5.0


class GarbageCollector:
    """Works on owners: keys are (kind/uid, namespace/name) so that a deleted owner can still be named."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owners = WorkQueue(self._collect)
        self._deleting = WorkQueue(self._finish)
        self._namespaces = WorkQueue(self._empty_namespace)
        self._quotas = WorkQueue(self._refresh)
        self._claims = WorkQueue(self._bind_claim)
        self._unscheduled = WorkQueue(self._fail_unscheduled)
        # By uid: namespaces that wait for their grace period, and those whose content is being deleted.
        self._waiting: set[str] = set()
        self._emptying: set[str] = set()
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        """Dependents of owners that went while nobody looked, and deletions that were under way."""
        for resource in RESOURCES:
            for stored in self._world.store.all(resource):
                meta = stored.object["metadata"]
                for owner in meta.get("ownerReferences") or ():
                    if not self._exists(owner, meta.get("namespace", "")):
                        self._owners.add((owner["uid"], ""))
                if meta.get("deletionTimestamp"):
                    self._queue_deletion(resource, stored.object)
                if resource is CLAIMS:
                    self._claims.add(stored.key)

    def _on_change(self, change: Change) -> None:
        meta, resource = change.object["metadata"], change.resource
        if resource is EVENTS:
            return
        if change.type == "DELETED":
            self._emptying.discard(meta["uid"])
            self._owners.add((meta["uid"], ""))
            for owner in meta.get("ownerReferences") or ():
                self._queue_owner(owner, meta.get("namespace", ""))
            if resource.namespaced:
                self._namespaces.add(("", meta["namespace"]))
        elif meta.get("deletionTimestamp"):
            self._queue_deletion(resource, change.object)
            if resource is PODS and not change.object["spec"].get("nodeName"):
                self._unscheduled.add(change.stored.key)
        if resource is CLAIMS and change.type == "ADDED":
            self._claims.add(change.stored.key)
        if resource in (QUOTAS, PODS):
            self._quotas.add(("", meta["namespace"]))

    def _queue_owner(self, owner: Obj, namespace: str) -> None:
        """A dependent went: its owner may be waiting for that."""
        resource = BY_KIND.get(owner["kind"])
        held = self._world.store.get(resource, namespace, owner["name"]) if resource else None
        if resource and held and held["metadata"].get("deletionTimestamp"):
            self._queue_deletion(resource, held)

    def _queue_deletion(self, resource: Resource, obj: Obj) -> None:
        meta = obj["metadata"]
        if resource is NAMESPACES:
            self._queue_namespace(meta["name"], meta["uid"])
        elif any(held in (FOREGROUND, ORPHAN) for held in meta.get("finalizers") or ()):
            self._deleting.add((resource.kind, f"{meta.get('namespace', '')}/{meta['name']}"))

    def _queue_namespace(self, name: str, uid: str) -> None:
        if uid in self._emptying:
            self._namespaces.add(("", name))
        elif uid not in self._waiting:
            self._waiting.add(uid)
            self._world.clock.call_later(NAMESPACE_GRACE_S, lambda: self._begin_to_empty(name, uid))

    def _begin_to_empty(self, name: str, uid: str) -> None:
        self._waiting.discard(uid)
        self._emptying.add(uid)
        self._namespaces.add(("", name))

    def _collect(self, key: Key) -> None:
        """Deletes what a gone owner leaves behind, unless another owner still holds it."""
        for resource, dependent in self._world.store.owned_by(key[0]):
            meta = dependent["metadata"]
            owners = meta.get("ownerReferences") or []
            alive = [each for each in owners if self._exists(each, meta.get("namespace", ""))]
            if alive:
                self._world.api.change(
                    resource,
                    dependent,
                    _owners_setter(alive),
                )
            elif not meta.get("deletionTimestamp"):
                self._delete(resource, dependent, "Background")

    def _finish(self, key: Key) -> None:
        """One step of a foreground or orphan deletion."""
        resource = BY_KIND[key[0]]
        namespace, _, name = key[1].partition("/")
        owner = self._world.store.get(resource, namespace, name)
        if owner is None or not owner["metadata"].get("deletionTimestamp"):
            return
        finalizers, uid = owner["metadata"].get("finalizers") or [], owner["metadata"]["uid"]
        if ORPHAN in finalizers:
            self._orphan(uid)
            self._drop_finalizer(resource, owner, ORPHAN)
        elif FOREGROUND in finalizers and not self._waits_for_dependents(uid):
            self._drop_finalizer(resource, owner, FOREGROUND)

    def _waits_for_dependents(self, uid: str) -> bool:
        """Deletes dependents; only those that block the owner are waited for."""
        for resource, dependent in self._world.store.owned_by(uid):
            if not dependent["metadata"].get("deletionTimestamp"):
                has_own = bool(self._world.store.owned_by(dependent["metadata"]["uid"]))
                self._delete(resource, dependent, "Foreground" if has_own else "Background")
        return any(_blocks(dependent, uid) for _, dependent in self._world.store.owned_by(uid))

    def _orphan(self, uid: str) -> None:
        for resource, dependent in self._world.store.owned_by(uid):
            kept = [each for each in dependent["metadata"]["ownerReferences"] if each["uid"] != uid]
            self._world.api.change(resource, dependent, _owners_setter(kept))

    def _drop_finalizer(self, resource: Resource, obj: Obj, finalizer: str) -> None:
        def edit(edited: Obj) -> None:
            kept = [each for each in edited["metadata"].get("finalizers") or () if each != finalizer]
            edited["metadata"]["finalizers"] = kept
            if not kept:
                del edited["metadata"]["finalizers"]

        self._world.api.change(resource, obj, edit)

    def _empty_namespace(self, key: Key) -> None:
        namespace = self._world.store.get(NAMESPACES, "", key[1])
        if namespace is None or namespace["metadata"]["uid"] not in self._emptying:
            return
        left = 0
        for resource in RESOURCES:
            if not resource.namespaced:
                continue
            for stored in self._world.store.in_order(resource, key[1]):
                if not stored.object["metadata"].get("deletionTimestamp"):
                    self._delete(resource, stored.object, "Background")
            left += self._world.store.count(resource, key[1])

        def edit(edited: Obj) -> None:
            edited["status"]["phase"] = "Terminating"
            if not left:
                edited["spec"]["finalizers"] = []

        self._world.api.change(NAMESPACES, namespace, edit)

    def _fail_unscheduled(self, key: Key) -> None:
        """The pod collector: a deleted pod that no kubelet knows fails, so that its Job can count it."""
        pod = self._world.store.get(PODS, *key)
        if pod is not None and pod["metadata"].get("deletionTimestamp"):
            self._world.api.change(PODS, pod, lambda edited: edited["status"].update(phase="Failed"))

    def _refresh(self, key: Key) -> None:
        refresh_quotas(self._world.store, self._world.usage, key[1])

    def _bind_claim(self, key: Key) -> None:
        """A provisioner that always has room."""
        claim = self._world.store.get(CLAIMS, *key)
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            return

        def edit(edited: Obj) -> None:
            spec = edited["spec"]
            spec.setdefault("volumeName", f"pvc-{edited['metadata']['uid']}")
            spec.setdefault("storageClassName", "simulated")
            capacity = (spec.get("resources") or {}).get("requests") or {}
            edited["status"] = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": capacity}

        self._world.api.change(CLAIMS, claim, edit)

    def _exists(self, owner: Obj, namespace: str) -> bool:
        resource = BY_KIND.get(owner["kind"])
        if resource is None:
            return True
        held = self._world.store.get(resource, namespace if resource.namespaced else "", owner["name"])
        return held is not None and held["metadata"]["uid"] == owner["uid"]

    def _delete(self, resource: Resource, obj: Obj, policy: str) -> None:
        meta = obj["metadata"]
        options = Deletion(policy=policy, uid=meta["uid"])
        self._world.api.delete(resource, meta.get("namespace", ""), meta["name"], options)


def _owners_setter(owners: list[Obj]) -> Callable[[Obj], None]:
    def edit(edited: Obj) -> None:
        edited["metadata"]["ownerReferences"] = owners
        if not owners:
            del edited["metadata"]["ownerReferences"]

    return edit


def _blocks(dependent: Obj, uid: str) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in owners)
