"""The ReplicaSet controller: keeps the wanted number of pods, and gives up the least useful ones first."""

from clusters.simulated.api import Deletion
from clusters.simulated.clock import parse_stamp
from clusters.simulated.controllers.job import controller_of
from clusters.simulated.errors import ApiError
from clusters.simulated.resources import PODS, REPLICA_SETS, Obj
from clusters.simulated.store import Change, Key, copy_of
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_COMPONENT = "replicaset-controller"
_RETRY_S = 2.0
# Pods change in bursts: one look for all of them.
_GATHER_S = 0.05


class ReplicaSetController:
    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = WorkQueue(self._sync)
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(REPLICA_SETS):
            self._queue.add(stored.key)

    def _on_change(self, change: Change) -> None:
        if change.resource is REPLICA_SETS and change.type != "DELETED":
            self._queue.add(change.stored.key)
        elif change.resource is PODS:
            owner = controller_of(change.object)
            if owner and owner["kind"] == "ReplicaSet":
                self._queue.add_after((change.object["metadata"]["namespace"], owner["name"]), _GATHER_S)

    def _sync(self, key: Key) -> None:
        replica_set = self._world.store.get(REPLICA_SETS, *key)
        if replica_set is None:
            return
        if not replica_set["metadata"].get("deletionTimestamp"):
            live = self._live(replica_set)
            wanted = replica_set["spec"]["replicas"]
            if len(live) < wanted:
                self._create(replica_set, wanted - len(live))
            elif len(live) > wanted:
                self._delete(replica_set, sorted(live, key=_usefulness)[: len(live) - wanted])
        self._write(replica_set)

    def _create(self, replica_set: Obj, count: int) -> None:
        meta = replica_set["metadata"]
        for _ in range(count):
            try:
                pod = self._world.api.create(PODS, meta["namespace"], _new_pod(replica_set))
            except ApiError as error:
                text = f"Error creating: {error}"
                self._world.recorder.warn(REPLICA_SETS, replica_set, "FailedCreate", text, _COMPONENT)
                self._queue.add_after((meta["namespace"], meta["name"]), self._world.clock.real(_RETRY_S))
                return
            text = f"Created pod: {pod['metadata']['name']}"
            self._world.recorder.record(REPLICA_SETS, replica_set, "SuccessfulCreate", text, _COMPONENT)

    def _delete(self, replica_set: Obj, pods: list[Obj]) -> None:
        for pod in pods:
            meta = pod["metadata"]
            options = Deletion(policy="Background", uid=meta["uid"])
            self._world.api.delete(PODS, meta["namespace"], meta["name"], options)
            text = f"Deleted pod: {meta['name']}"
            self._world.recorder.record(REPLICA_SETS, replica_set, "SuccessfulDelete", text, _COMPONENT)

    def _write(self, replica_set: Obj) -> None:
        live = self._live(replica_set)
        ready = [pod for pod in live if ready_since(pod) is not None]
        settle_s = replica_set["spec"].get("minReadySeconds", 0)
        available = [pod for pod in ready if self._settled(replica_set, pod, settle_s)]
        status = {
            "replicas": len(live),
            "fullyLabeledReplicas": len(live),
            "readyReplicas": len(ready),
            "availableReplicas": len(available),
            "observedGeneration": replica_set["metadata"].get("generation", 1),
        }
        kept = {name: value for name, value in status.items() if value or name == "replicas"}
        self._world.api.change(REPLICA_SETS, replica_set, lambda edited: edited.update(status=kept))

    def _settled(self, replica_set: Obj, pod: Obj, settle_s: float) -> bool:
        since = ready_since(pod)
        if since is None or not settle_s:
            return since is not None
        passed = self._world.clock.simulated(self._world.clock.now() - since)
        if passed < settle_s:
            meta = replica_set["metadata"]
            later = self._world.clock.real(settle_s - passed) + 0.01
            self._queue.add_after((meta["namespace"], meta["name"]), later)
        return passed >= settle_s

    def _live(self, replica_set: Obj) -> list[Obj]:
        uid = replica_set["metadata"]["uid"]
        return [
            pod
            for _, pod in self._world.store.owned_by(uid, PODS)
            if not pod["metadata"].get("deletionTimestamp")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]


def ready_since(pod: Obj) -> float | None:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return parse_stamp(condition["lastTransitionTime"])
    return None


def _usefulness(pod: Obj) -> tuple[bool, int, bool, int, float]:
    """Least useful first: no node, then pending, then not ready, then cheap to delete, then young."""
    since = ready_since(pod)
    phase = {"Pending": 0, "Unknown": 1}.get(pod["status"].get("phase", ""), 2)
    notes = pod["metadata"].get("annotations") or {}
    cost = notes.get("controller.kubernetes.io/pod-deletion-cost", "0")
    price = int(cost) if cost.lstrip("-").isdigit() else 0
    born = since if since is not None else parse_stamp(pod["metadata"]["creationTimestamp"])
    return (bool(pod["spec"].get("nodeName")), phase, since is not None, price, -born)


def _new_pod(replica_set: Obj) -> Obj:
    template, meta = copy_of(replica_set["spec"]["template"]), replica_set["metadata"]
    pod_meta = template.get("metadata") or {}
    pod_meta["generateName"] = f"{meta['name']}-"
    pod_meta["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {"metadata": pod_meta, "spec": template["spec"]}
