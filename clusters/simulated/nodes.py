"""Node life: Ready conditions, taints of lost and cordoned nodes, eviction of pods without toleration."""

import asyncio
from typing import Any

from clusters.simulated.clock import parse_stamp
from clusters.simulated.containers import set_condition
from clusters.simulated.errors import not_found
from clusters.simulated.evictions import disrupt
from clusters.simulated.kubelet import Kubelets
from clusters.simulated.matching import tolerates
from clusters.simulated.resources import NODES, PODS, Obj
from clusters.simulated.store import Change, Key
from clusters.simulated.world import World

_UNREACHABLE, _CORDONED = "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"
_SILENT = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
_READY = ("KubeletReady", "kubelet is posting ready status")


class Nodes:
    """Marks nodes and runs the taint manager. `fail` and `recover` are the switches of a lost node."""

    def __init__(self, world: World, kubelets: Kubelets) -> None:
        self._world = world
        self._kubelets = kubelets
        self._evictions: dict[str, asyncio.TimerHandle] = {}
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(NODES):
            if _taint(stored.object, _UNREACHABLE):
                self._world.down_nodes.add(stored.key[1])
            self._watch_taints(stored.object)

    def fail(self, name: str) -> None:
        """The node falls silent: Ready becomes Unknown, its pods stay until somebody deletes them."""
        node = self._find(name)
        self._world.down_nodes.add(name)
        now = self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            for condition in edited["status"]["conditions"]:
                condition.update(status="Unknown", reason=_SILENT[0], message=_SILENT[1], lastTransitionTime=now)
            taints = [each for each in edited["spec"].get("taints") or () if each["key"] != _UNREACHABLE]
            taints.append({"key": _UNREACHABLE, "effect": "NoSchedule", "timeAdded": now})
            taints.append({"key": _UNREACHABLE, "effect": "NoExecute", "timeAdded": now})
            edited["spec"]["taints"] = taints

        self._world.api.change(NODES, node, edit)
        text = f"Node {name} status is now: NodeNotReady"
        self._world.recorder.record(NODES, node, "NodeNotReady", text, "node-controller")
        for pod in self._world.store.pods_on(name):
            self._world.api.change(PODS, pod, lambda edited: set_condition(edited, ("Ready", False), now))

    def recover(self, name: str) -> None:
        """The kubelet comes back: deleted pods go, the others run on."""
        node = self._find(name)
        self._world.down_nodes.discard(name)
        now = self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            edited["status"]["conditions"] = node_conditions(now)
            taints = [each for each in edited["spec"].get("taints") or () if each["key"] != _UNREACHABLE]
            edited["spec"]["taints"] = taints
            if not taints:
                del edited["spec"]["taints"]

        self._world.api.change(NODES, node, edit)
        self._world.recorder.record(NODES, node, "NodeReady", f"Node {name} status is now: NodeReady", "kubelet")
        for pod in self._world.store.pods_on(name):
            self._world.api.change(PODS, pod, lambda edited: _restore_ready(edited, now))
        self._kubelets.node_returned(name)

    def set_allocatable(self, name: str, count: int) -> None:
        """Devices that the plug-in still offers; running pods keep what they hold."""

        def edit(edited: Obj) -> None:
            allocatable = edited["status"]["allocatable"]
            for resource in [each for each in allocatable if "/" in each]:
                allocatable[resource] = str(count)

        self._world.api.change(NODES, self._find(name), edit)

    def _find(self, name: str) -> Obj:
        node = self._world.store.get(NODES, "", name)
        if node is None:
            raise not_found(NODES, name)
        return node

    def _on_change(self, change: Change) -> None:
        if change.resource is NODES:
            self._node_changed(change)
        elif change.resource is PODS and change.type == "DELETED":
            self._cancel(change.object["metadata"]["uid"])
        elif change.resource is PODS and _just_bound(change):
            node = self._world.store.get(NODES, "", change.object["spec"]["nodeName"])
            if node is not None:
                self._judge(change.object, _evicting(node))

    def _node_changed(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            self._world.down_nodes.discard(name)
            asyncio.get_running_loop().call_soon(self._collect_orphans, name)
            return
        asyncio.get_running_loop().call_soon(self._complete, name)
        before = (change.previous.object.get("spec") or {}).get("taints") if change.previous else None
        if before != (change.object.get("spec") or {}).get("taints"):
            self._watch_taints(change.object)

    def _complete(self, name: str) -> None:
        """What the node controller and a fresh kubelet write: the cordon taint, the first conditions."""
        node = self._world.store.get(NODES, "", name)
        if node is None:
            return
        cordoned = bool(node["spec"].get("unschedulable"))
        marked = any(each["key"] == _CORDONED for each in node["spec"].get("taints") or ())
        now = self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            taints = [each for each in edited["spec"].get("taints") or () if each["key"] != _CORDONED]
            if cordoned:
                taints.append({"key": _CORDONED, "effect": "NoSchedule", "timeAdded": now})
            edited["spec"]["taints"] = taints
            if not taints:
                del edited["spec"]["taints"]
            status = edited.setdefault("status", {})
            status.setdefault("conditions", node_conditions(now))
            status.setdefault("capacity", {"cpu": "1k", "memory": "1Ti", "pods": "1M"})
            status.setdefault("allocatable", dict(status["capacity"]))

        if cordoned != marked or "conditions" not in (node.get("status") or {}):
            self._world.api.change(NODES, node, edit)

    def _collect_orphans(self, node: str) -> None:
        """Pods of a node that was deleted go without waiting for anybody."""
        for pod in self._world.store.pods_on(node):
            meta = pod["metadata"]
            self._world.api.change(PODS, pod, lambda edited: edited["metadata"].pop("finalizers", None))
            if self._world.store.get(PODS, meta["namespace"], meta["name"]) is not None:
                self._world.store.remove(PODS, meta["namespace"], meta["name"])

    def _watch_taints(self, node: Obj) -> None:
        taints = _evicting(node)
        for pod in self._world.store.pods_on(node["metadata"]["name"]):
            self._judge(pod, taints)

    def _judge(self, pod: Obj, taints: list[Obj]) -> None:
        """Plans a pod's eviction after the shortest time it tolerates its node's taints, or calls it off."""
        meta = pod["metadata"]
        self._cancel(meta["uid"])
        ended = pod["status"].get("phase") in ("Succeeded", "Failed")
        if ended or not taints or meta.get("deletionTimestamp"):
            return
        waits = [_tolerated_until(pod, taint) for taint in taints]
        known = [wait for wait in waits if wait is not None]
        if known:
            # `timeAdded` is real time, tolerations are simulated seconds.
            passed = self._world.clock.simulated(max(0.0, self._world.clock.now() - _since(taints)))
            key: Key = (meta["namespace"], meta["name"])
            delay = max(0.0, min(known) - passed)
            self._evictions[meta["uid"]] = self._world.clock.call_later(delay, lambda: self._evict(key, meta["uid"]))

    def _evict(self, key: Key, uid: str) -> None:
        self._evictions.pop(uid, None)
        pod = self._world.store.get(PODS, *key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        text = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._world.recorder.record(PODS, pod, "TaintManagerEviction", text, "taint-eviction-controller")
        disrupt(self._world, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")

    def _cancel(self, uid: str) -> None:
        handle = self._evictions.pop(uid, None)
        if handle is not None:
            handle.cancel()


def node_conditions(now: str) -> list[dict[str, Any]]:
    rows = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", *_READY),
    ]
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason, message in rows
    ]


def _just_bound(change: Change) -> bool:
    before = change.previous.object["spec"].get("nodeName") if change.previous else None
    return bool(change.object["spec"].get("nodeName")) and not before


def _evicting(node: Obj) -> list[Obj]:
    return [each for each in (node.get("spec") or {}).get("taints") or () if each["effect"] == "NoExecute"]


def _taint(node: Obj, key: str) -> bool:
    return any(each["key"] == key for each in _evicting(node))


def _since(taints: list[Obj]) -> float:
    return min((parse_stamp(each["timeAdded"]) for each in taints if each.get("timeAdded")), default=float("inf"))


def _tolerated_until(pod: Obj, taint: Obj) -> float | None:
    """Simulated seconds; 0 for not tolerated, None for tolerated without end."""
    matching = [each for each in pod["spec"].get("tolerations") or () if tolerates(each, taint)]
    if not matching:
        return 0.0
    limits = [float(each["tolerationSeconds"]) for each in matching if "tolerationSeconds" in each]
    return min(limits) if limits else None


def _restore_ready(pod: Obj, now: str) -> None:
    statuses = pod["status"].get("containerStatuses") or []
    if statuses and all(each.get("ready") for each in statuses):
        set_condition(pod, ("Ready", True), now)
