"""Binds pods to nodes by what the pod's spec says: gates, selectors, affinity, taints, claims, capacity.

It looks at no label or annotation of a client to place anything, preempts nobody and knows no gangs.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from clusters.simulated.containers import set_condition
from clusters.simulated.matching import node_matches, pinned_nodes, tolerates, untolerated
from clusters.simulated.mounts import missing_claim
from clusters.simulated.quantities import Amounts, amounts, pod_requests
from clusters.simulated.resources import CLAIMS, NODES, PODS, Obj
from clusters.simulated.store import Change, Key
from clusters.simulated.world import World

_TERMINAL = ("Succeeded", "Failed")
# Enough choice for a good place without looking at every node, as the real scheduler samples.
_ENOUGH = 16
# Freed room is looked at in one go, because pods end in bursts.
_GATHER_S = 0.02
# What the dynamic allocation of devices has to say, which is nothing here.
_BEFORE_PREEMPTION = "no new claims to deallocate, preemption:"
# Labels of a node that its pods get as they are bound.
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(slots=True)
class _Node:
    """A node as the scheduler sees it; `offered` in thousandths."""

    object: Obj
    offered: Amounts
    taints: list[Obj]
    cordoned: bool


class Scheduler:
    def __init__(self, world: World) -> None:
        self._world = world
        self._nodes: dict[str, _Node] = {}
        self._waiting: dict[Key, None] = {}
        self._refused: dict[Key, set[str] | None] = {}
        self._said: dict[str, str] = {}
        self._freed: set[str] = set()
        self._planned = False
        self._next_node = 0
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(NODES):
            self._learn(stored.object)
        for stored in self._world.store.all(PODS):
            self._consider(stored.key, stored.object)

    def _on_change(self, change: Change) -> None:
        if change.resource is NODES:
            self._node_changed(change)
        elif change.resource is PODS:
            self._pod_changed(change)
        elif change.resource is CLAIMS:
            self._free("")

    def _node_changed(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            self._nodes.pop(name, None)
        else:
            self._learn(change.object)
        self._free(name)

    def _pod_changed(self, change: Change) -> None:
        pod, key = change.object, change.stored.key
        node = pod["spec"].get("nodeName")
        ended = change.type == "DELETED" or pod["status"].get("phase") in _TERMINAL
        if node and ended:
            self._free(node)
        if change.type == "DELETED" or node:
            self._waiting.pop(key, None)
            self._refused.pop(key, None)
            if change.type == "DELETED":
                self._said.pop(pod["metadata"]["uid"], None)
            return
        before = change.previous.object["spec"] if change.previous else None
        if before != pod["spec"]:
            self._consider(key, pod)

    def _consider(self, key: Key, pod: Obj) -> None:
        spec = pod["spec"]
        mine = spec.get("schedulerName", "default-scheduler") == "default-scheduler"
        idle = spec.get("nodeName") or spec.get("schedulingGates") or pod["metadata"].get("deletionTimestamp")
        if mine and not idle and pod["status"].get("phase") not in _TERMINAL:
            self._refused.pop(key, None)
            self._waiting[key] = None
            self._plan(0.0)

    def _learn(self, node: Obj) -> None:
        self._nodes[node["metadata"]["name"]] = _Node(
            node,
            amounts((node.get("status") or {}).get("allocatable")),
            (node.get("spec") or {}).get("taints") or [],
            bool((node.get("spec") or {}).get("unschedulable")),
        )

    def _free(self, node: str) -> None:
        """Room on a node may have changed; empty for a change that concerns any pod."""
        if self._refused:
            self._freed.add(node)
            self._plan(_GATHER_S)

    def _plan(self, seconds: float) -> None:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_later(seconds, self._run)

    def _run(self) -> None:
        self._planned = False
        self._retry_refused()
        batch, self._waiting = self._waiting, {}
        order = sorted(batch, key=self._rank)
        hopeless: dict[bytes, str] = {}
        for key in order:
            pod = self._world.store.get(PODS, *key)
            if pod is not None and not pod["spec"].get("nodeName"):
                self._schedule(key, pod, hopeless)

    def _retry_refused(self) -> None:
        freed, self._freed = self._freed, set()
        if not freed:
            return
        for key, pins in list(self._refused.items()):
            if pins is None or "" in freed or pins & freed:
                del self._refused[key]
                self._waiting[key] = None

    def _rank(self, key: Key) -> tuple[int, str, str]:
        """Higher priority first, then older."""
        pod = self._world.store.get(PODS, *key)
        if pod is None:
            return (0, "", "")
        return (-pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"], key[1])

    def _schedule(self, key: Key, pod: Obj, hopeless: dict[bytes, str]) -> None:
        """`hopeless` remembers the refusal of equal pods in this round, so that a long queue costs little."""
        wish = _wish(pod)
        if wish in hopeless:
            self._refuse(key, pod, hopeless[wish])
            return
        missing = missing_claim(self._world.store, pod)
        if missing:
            total = len(self._nodes)
            none = f"0/{total} nodes are available:"
            tail = f"{_BEFORE_PREEMPTION} {none} {total} Preemption is not helpful for scheduling."
            self._refuse(key, pod, f"{none} {missing}. {tail}")
            return
        chosen, why = self._find(pod)
        if chosen is None:
            hopeless[wish] = why
            self._refuse(key, pod, why)
        else:
            self._bind(pod, chosen)

    def _find(self, pod: Obj) -> tuple[str | None, str]:
        """A node, or the sentence that says why there is none."""
        wanted = {**pod_requests(pod["spec"]), "pods": 1000}
        pins = pinned_nodes(pod["spec"])
        names = self._candidates(pins)
        reasons: Counter[str] = Counter()
        fits: list[str] = []
        for place, name in enumerate(names):
            refusals = self._refusals(pod["spec"], wanted, self._nodes[name])
            if not refusals:
                fits.append(name)
                if len(fits) >= _ENOUGH:
                    self._next_node = (self._next_node + place + 1) % len(self._nodes)
                    break
            reasons.update(refusals)
        if fits:
            return max(fits, key=lambda name: self._free_share(name, wanted)), ""
        absent = len(self._nodes) - len(names)
        if absent:
            reasons["node(s) didn't satisfy plugin(s) [NodeAffinity]"] += absent
        return None, _sentence(len(self._nodes), reasons)

    def _candidates(self, pins: set[str] | None) -> list[str]:
        if pins is not None:
            return [name for name in sorted(pins) if name in self._nodes]
        names = list(self._nodes)
        start = self._next_node % len(names) if names else 0
        return names[start:] + names[:start]

    def _refusals(self, spec: Obj, wanted: Amounts, node: _Node) -> Iterable[str]:
        """Why a pod cannot go to a node: the first failing check, or every resource that is short."""
        tolerations = spec.get("tolerations") or []
        if node.cordoned and not any(tolerates(each, _UNSCHEDULABLE) for each in tolerations):
            return ("node(s) were unschedulable",)
        if untolerated(tolerations, node.taints, ("NoSchedule", "NoExecute")):
            return ("node(s) had untolerated taint(s)",)
        if not node_matches(spec, node.object):
            return ("node(s) didn't match Pod's node affinity/selector",)
        used = self._world.usage.by_node.get(node.object["metadata"]["name"], {})
        return [
            "Too many pods" if name == "pods" else f"Insufficient {name}"
            for name, value in wanted.items()
            if value and used.get(name, 0) + value > node.offered.get(name, 0)
        ]

    def _free_share(self, name: str, wanted: Amounts) -> float:
        """Mean free share of the wanted resources: the emptiest node is best."""
        offered, used = self._nodes[name].offered, self._world.usage.by_node.get(name, {})
        shares = [1 - used.get(each, 0) / offered[each] for each in wanted if offered.get(each)]
        return sum(shares) / len(shares)

    def _bind(self, pod: Obj, node: str) -> None:
        now, meta = self._world.clock.stamp(), pod["metadata"]

        def edit(edited: Obj) -> None:
            edited["spec"]["nodeName"] = node
            edited["metadata"].setdefault("labels", {}).update(self._topology_of(node))
            set_condition(edited, ("PodScheduled", True), now)

        self._said.pop(meta["uid"], None)
        text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._world.recorder.record(PODS, pod, "Scheduled", text, "default-scheduler")
        self._world.api.change(PODS, pod, edit)

    def _topology_of(self, node: str) -> dict[str, str]:
        labels = self._nodes[node].object["metadata"].get("labels") or {} if node in self._nodes else {}
        return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}

    def _refuse(self, key: Key, pod: Obj, why: str) -> None:
        self._refused[key] = pinned_nodes(pod["spec"])
        uid, now = pod["metadata"]["uid"], self._world.clock.stamp()
        if self._said.get(uid) == why:
            return
        self._said[uid] = why
        self._world.recorder.warn(PODS, pod, "FailedScheduling", why, "default-scheduler")
        self._world.api.change(
            PODS,
            pod,
            lambda edited: set_condition(edited, ("PodScheduled", False), now, "Unschedulable", why),
        )


def _wish(pod: Obj) -> bytes:
    """Equal for pods that no round can tell apart."""
    spec = pod["spec"]
    parts = [
        pod["metadata"]["namespace"],
        spec.get("nodeSelector"),
        spec.get("affinity"),
        spec.get("tolerations"),
        spec.get("volumes"),
        pod_requests(spec),
    ]
    return orjson.dumps(parts)


def _sentence(total: int, reasons: Counter[str]) -> str:
    """The real scheduler's words, reasons in alphabetical order."""
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    short = sum(count for reason, count in reasons.items() if reason.startswith(("Insufficient", "Too many")))
    victims = min(short, total)
    parts = []
    if victims:
        parts.append(f"{victims} No preemption victims found for incoming pod")
    if total - victims:
        parts.append(f"{total - victims} Preemption is not helpful for scheduling")
    if total == 0:
        return "no nodes available to schedule pods"
    none = f"0/{total} nodes are available:"
    return f"{none} {listed}. {_BEFORE_PREEMPTION} {none} {', '.join(parts)}."
