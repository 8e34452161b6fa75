"""The StatefulSet controller: pods with names of their own, made in order or all at once."""

import hashlib

import orjson

from clusters.simulated.api import Deletion
from clusters.simulated.containers import ORDINAL_LABEL
from clusters.simulated.controllers.job import controller_of
from clusters.simulated.controllers.replicas import ready_since
from clusters.simulated.errors import ApiError
from clusters.simulated.resources import PODS, STATEFUL_SETS, Obj
from clusters.simulated.store import Change, Key, copy_of
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_COMPONENT = "statefulset-controller"
_TERMINAL = ("Succeeded", "Failed")
_RETRY_S = 2.0
# Pods change in bursts: one look for all of them.
_GATHER_S = 0.05


class StatefulSetController:
    """Templates that change replace no pod: the portal's sets are `OnDelete`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = WorkQueue(self._sync)
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(STATEFUL_SETS):
            self._queue.add(stored.key)

    def _on_change(self, change: Change) -> None:
        if change.resource is STATEFUL_SETS and change.type != "DELETED":
            self._queue.add(change.stored.key)
        elif change.resource is PODS:
            owner = controller_of(change.object)
            if owner and owner["kind"] == "StatefulSet":
                self._queue.add_after((change.object["metadata"]["namespace"], owner["name"]), _GATHER_S)

    def _sync(self, key: Key) -> None:
        held = self._world.store.get(STATEFUL_SETS, *key)
        if held is None:
            return
        if not held["metadata"].get("deletionTimestamp"):
            self._advance(held)
        self._write(held)

    def _advance(self, held: Obj) -> None:
        """One pass over the ordinals; in order, it ends at the first that is not ready."""
        pods, wanted = self._pods_of(held), held["spec"]["replicas"]
        in_order = held["spec"]["podManagementPolicy"] == "OrderedReady"
        for ordinal in range(wanted):
            pod = pods.get(ordinal)
            if pod is None:
                if not self._create(held, ordinal):
                    return
            elif pod["status"].get("phase") in _TERMINAL and not _is_leaving(pod):
                self._delete(held, pod, "RecreatingFailedPod")
            if in_order and (pod is None or _is_leaving(pod) or ready_since(pod) is None):
                return
        for ordinal in sorted((each for each in pods if each >= wanted), reverse=True):
            if not _is_leaving(pods[ordinal]):
                self._delete(held, pods[ordinal], "SuccessfulDelete")
            if in_order:
                return

    def _create(self, held: Obj, ordinal: int) -> bool:
        meta = held["metadata"]
        name = f"{meta['name']}-{ordinal}"
        try:
            self._world.api.create(PODS, meta["namespace"], _new_pod(held, ordinal))
        except ApiError as error:
            text = f"create Pod {name} in StatefulSet {meta['name']} failed error: {error}"
            self._world.recorder.warn(STATEFUL_SETS, held, "FailedCreate", text, _COMPONENT)
            self._queue.add_after((meta["namespace"], meta["name"]), self._world.clock.real(_RETRY_S))
            return False
        text = f"create Pod {name} in StatefulSet {meta['name']} successful"
        self._world.recorder.record(STATEFUL_SETS, held, "SuccessfulCreate", text, _COMPONENT)
        return True

    def _delete(self, held: Obj, pod: Obj, reason: str) -> None:
        meta = pod["metadata"]
        options = Deletion(policy="Background", uid=meta["uid"])
        self._world.api.delete(PODS, meta["namespace"], meta["name"], options)
        text = f"delete Pod {meta['name']} in StatefulSet {held['metadata']['name']} successful"
        self._world.recorder.record(STATEFUL_SETS, held, reason, text, _COMPONENT)

    def _write(self, held: Obj) -> None:
        pods = [pod for pod in self._pods_of(held).values() if pod["status"].get("phase") not in _TERMINAL]
        ready = [pod for pod in pods if ready_since(pod) is not None]
        revision = _revision(held)
        status = {
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "currentReplicas": len(pods),
            "updatedReplicas": len(pods),
            "availableReplicas": len(ready),
            "currentRevision": revision,
            "updateRevision": revision,
            "observedGeneration": held["metadata"].get("generation", 1),
            "collisionCount": 0,
        }
        always = ("replicas", "availableReplicas", "collisionCount")
        kept = {name: value for name, value in status.items() if value or name in always}
        self._world.api.change(STATEFUL_SETS, held, lambda edited: edited.update(status=kept))

    def _pods_of(self, held: Obj) -> dict[int, Obj]:
        owned = (pod for _, pod in self._world.store.owned_by(held["metadata"]["uid"], PODS))
        return {int(pod["metadata"]["name"].rpartition("-")[2]): pod for pod in owned}


def _new_pod(held: Obj, ordinal: int) -> Obj:
    template, meta = copy_of(held["spec"]["template"]), held["metadata"]
    name, pod_meta, spec = f"{meta['name']}-{ordinal}", template.get("metadata") or {}, template["spec"]
    pod_meta["name"] = name
    pod_meta.setdefault("labels", {}).update(
        {
            ORDINAL_LABEL: str(ordinal),
            "statefulset.kubernetes.io/pod-name": name,
            "controller-revision-hash": _revision(held),
        }
    )
    pod_meta["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    spec["hostname"], spec["subdomain"] = name, held["spec"].get("serviceName", "")
    return {"metadata": pod_meta, "spec": spec}


def _revision(held: Obj) -> str:
    template = orjson.dumps(held["spec"]["template"], option=orjson.OPT_SORT_KEYS)
    return f"{held['metadata']['name']}-{hashlib.sha256(template).hexdigest()[:10]}"


def _is_leaving(pod: Obj) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
