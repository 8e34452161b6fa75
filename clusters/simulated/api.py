"""The API server's verbs on the store, without HTTP: what clients and controllers both go through."""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusters.simulated.admission import (
    Usage,
    admit_to_namespace,
    check_quotas,
    fill_in_requests,
    resolve_priority,
    resolve_runtime,
)
from clusters.simulated.clock import Clock, rfc3339
from clusters.simulated.errors import (
    Cause,
    bad_request,
    conflict,
    deleted_uid_mismatch,
    forbidden,
    invalid,
    not_found,
    uid_mismatch,
)
from clusters.simulated.errors import already_exists as exists_already
from clusters.simulated.patch import apply_patch
from clusters.simulated.resources import JOBS, NAMESPACES, NODES, PODS, Obj, Resource
from clusters.simulated.shapes import decoded
from clusters.simulated.store import Store, copy_of
from clusters.simulated.strategies import SPECLESS, strategy_of
from clusters.simulated.validation.metadata import forbidden_field, metadata_causes

# The suffix alphabet of the real server: no vowels, no look-alikes.
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_FIXED_METADATA = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(frozen=True, slots=True)
class Deletion:
    """Options of a DELETE; `policy` None means the kind's own default."""

    policy: str | None = None
    grace_s: int | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False


class Api:
    """Checks and stores. Everything raises `ApiError` with the answer that the client gets."""

    def __init__(self, store: Store, clock: Clock, usage: Usage) -> None:
        self.store = store
        self.clock = clock
        self.usage = usage

    def read(self, resource: Resource, namespace: str, name: str) -> Obj:
        found = self.store.get(resource, namespace, name)
        if found is None:
            raise not_found(resource, name)
        return found

    def create(self, resource: Resource, namespace: str, body: Any, *, dry_run: bool = False) -> Obj:
        obj = decoded(resource, body)
        meta = obj["metadata"]
        self._place(resource, namespace, meta)
        if resource not in SPECLESS:
            obj.setdefault("spec", {})
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = self.clock.stamp()
        for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
            meta.pop(field, None)
        if resource.generation:
            meta["generation"] = 1
        self._admit(resource, namespace, obj)
        if self.store.get(resource, namespace, meta["name"]) is not None:
            raise exists_already(resource, meta["name"])
        return obj if dry_run else self.store.put(resource, obj)

    def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        status: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        current = self.read(resource, namespace, name)
        wanted = decoded(resource, body)
        named = wanted["metadata"].get("name", name)
        if named != name:
            raise bad_request(f"the name of the object ({named}) does not match the name on the URL ({name})")
        return self._update(resource, current, wanted, status=status, dry_run=dry_run)

    def patch(
        self,
        resource: Resource,
        key: tuple[str, str],
        patch: tuple[str, Any],
        *,
        status: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        """`patch` is a media type and a body. It is applied to the newest version, so `test` sees that."""
        current = self.read(resource, *key)
        target = {"kind": resource.kind, "apiVersion": resource.api_version, **copy_of(current)}
        wanted = decoded(resource, apply_patch(patch[0], target, patch[1]))
        return self._update(resource, current, wanted, status=status, dry_run=dry_run)

    def change(self, resource: Resource, obj: Obj, edit: Callable[[Obj], None]) -> Obj:
        """A controller's own write: edits a copy of the newest version and stores it if anything changed."""
        meta = obj["metadata"]
        current = self.store.get(resource, meta.get("namespace", ""), meta["name"])
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            return obj
        wanted = copy_of(current)
        edit(wanted)
        return self._finish(resource, current, wanted)

    def delete(self, resource: Resource, namespace: str, name: str, options: Deletion) -> tuple[Obj, bool]:
        """Answers the object and whether it is gone already."""
        current = self.read(resource, namespace, name)
        meta = current["metadata"]
        if options.uid is not None and options.uid != meta["uid"]:
            raise deleted_uid_mismatch(resource, name, options.uid, meta["uid"])
        if options.version is not None and options.version != meta["resourceVersion"]:
            raise conflict(resource, name)
        if resource is NAMESPACES and name in ("default", "kube-system"):
            raise forbidden(resource, name, "this namespace may not be deleted")
        wanted = copy_of(current)
        self._mark_deleted(resource, wanted, options)
        if options.dry_run:
            return wanted, False
        if not self._lingers(resource, wanted):
            return self.store.remove(resource, namespace, name), True
        return self._finish(resource, current, wanted), False

    def _place(self, resource: Resource, namespace: str, meta: Obj) -> None:
        """Sets namespace and, for `generateName`, a free name."""
        if resource.namespaced:
            if meta.get("namespace", namespace) != namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = namespace
        else:
            meta.pop("namespace", None)
        base = meta.get("generateName")
        if meta.get("name") or not base:
            meta.setdefault("name", "")
            return
        while not meta.get("name") or self.store.get(resource, namespace, meta["name"]):
            meta["name"] = base[:58] + random_suffix()

    def _admit(self, resource: Resource, namespace: str, obj: Obj) -> None:
        """Defaults, admission, then validation: the real server's order."""
        name = obj["metadata"]["name"]
        strategy = strategy_of(resource)
        if resource.namespaced:
            admit_to_namespace(self.store, resource, namespace, name)
        strategy.fill(obj)
        if resource is PODS:
            resolve_priority(self.store, obj)
            fill_in_requests(self.store, obj)
            resolve_runtime(self.store, obj)
        causes = [*metadata_causes(resource, obj), *strategy.check(obj)]
        if causes:
            raise invalid(resource, name, causes)
        if resource.namespaced:
            check_quotas(self.store, self.usage, resource, obj)

    def _update(self, resource: Resource, current: Obj, wanted: Obj, *, status: bool, dry_run: bool) -> Obj:
        name = current["metadata"]["name"]
        given = wanted["metadata"]
        if given.get("resourceVersion") not in (None, "", current["metadata"]["resourceVersion"]):
            raise conflict(resource, name)
        if given.get("uid") not in (None, "", current["metadata"]["uid"]):
            raise uid_mismatch(resource, name, given["uid"], current["metadata"]["uid"])
        wanted = _merged(resource, current, wanted, status=status)
        causes = [*metadata_causes(resource, wanted), *_finalizer_causes(current, wanted)]
        if not status and not causes:
            strategy = strategy_of(resource)
            causes += [*_checked(resource, wanted), *strategy.check_update(current, wanted)]
        if causes:
            raise invalid(resource, name, causes)
        if resource.generation and wanted.get("spec") != current.get("spec"):
            wanted["metadata"]["generation"] = current["metadata"].get("generation", 1) + 1
        return wanted if dry_run else self._finish(resource, current, wanted)

    def _finish(self, resource: Resource, current: Obj, wanted: Obj) -> Obj:
        """Stores a change. What changes nothing makes no version; a last finalizer gone ends the object."""
        if wanted == current:
            return current
        if wanted["metadata"].get("deletionTimestamp") and not self._lingers(resource, wanted):
            self.store.put(resource, wanted)
            return self.store.remove(resource, wanted["metadata"].get("namespace", ""), wanted["metadata"]["name"])
        return self.store.put(resource, wanted)

    def _mark_deleted(self, resource: Resource, obj: Obj, options: Deletion) -> None:
        meta = obj["metadata"]
        if resource is NAMESPACES:
            obj["status"] = {"phase": "Terminating"}
        policy = options.policy or ("Orphan" if resource is JOBS else "Background")
        finalizers = [held for held in meta.get("finalizers") or () if held not in (FOREGROUND, ORPHAN)]
        if policy == "Foreground":
            finalizers.append(FOREGROUND)
        elif policy == "Orphan" and self.store.owned_by(meta["uid"]):
            finalizers.append(ORPHAN)
        if finalizers or "finalizers" in meta:
            meta["finalizers"] = finalizers
        grace = _grace(resource, obj, options)
        held = meta.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" not in meta or held is None or grace < held:
            meta["deletionTimestamp"] = rfc3339(self.clock.now() + grace)
            meta["deletionGracePeriodSeconds"] = grace
            if resource.generation:
                meta["generation"] = meta.get("generation", 1) + 1

    def _lingers(self, resource: Resource, obj: Obj) -> bool:
        """Whether an object that is being deleted stays: for a finalizer, or a kubelet's grace period."""
        meta = obj["metadata"]
        if resource is NAMESPACES and (obj.get("spec") or {}).get("finalizers"):
            return True
        return bool(meta.get("finalizers")) or (resource is PODS and meta.get("deletionGracePeriodSeconds", 0) > 0)


def _merged(resource: Resource, current: Obj, wanted: Obj, *, status: bool) -> Obj:
    """The new object: fixed metadata of the old one, and only the status or all but the status changed."""
    meta, old = wanted["metadata"], current["metadata"]
    for field in _FIXED_METADATA:
        meta.pop(field, None)
        if field in old:
            meta[field] = old[field]
    meta["resourceVersion"] = old["resourceVersion"]
    if status:
        meta["ownerReferences"] = old.get("ownerReferences") or []
        if not meta["ownerReferences"]:
            del meta["ownerReferences"]
        return {**copy_of(current), "metadata": meta, "status": wanted.get("status") or {}}
    if resource.status:
        wanted["status"] = copy_of(current.get("status") or {})
    if resource not in SPECLESS:
        wanted.setdefault("spec", {})
    if wanted.get("spec", {}).get("schedulingGates") == []:
        del wanted["spec"]["schedulingGates"]  # an empty list is stored as none
    return wanted


def _checked(resource: Resource, wanted: Obj) -> list[Cause]:
    """The create rules hold for updates too; pods are compared with their old version instead."""
    return [] if resource in (PODS, NODES) else list(strategy_of(resource).check(wanted))


def _finalizer_causes(current: Obj, wanted: Obj) -> list[Cause]:
    if not current["metadata"].get("deletionTimestamp"):
        return []
    held = current["metadata"].get("finalizers") or []
    added = [each for each in wanted["metadata"].get("finalizers") or () if each not in held]
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
    return [forbidden_field("metadata.finalizers", text)] if added else []


def _grace(resource: Resource, obj: Obj, options: Deletion) -> int:
    """Only pods that may run on a node are given time."""
    if resource is not PODS or not obj["spec"].get("nodeName"):
        return 0
    if obj["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    if options.grace_s is not None:
        return max(0, options.grace_s)
    return max(1, int(obj["spec"].get("terminationGracePeriodSeconds", 30)))


def random_suffix(length: int = 5) -> str:
    return "".join(random.choices(_SUFFIX, k=length))  # noqa: S311 - a name, no secret
