"""What must hold at every moment on a cluster, judged from its own watch events. Pure.

Events must come in the order of their resource versions. The rules:

- `place`: a rank is bound to no other node than the plan of its gang says;
- `gathered`: no pod of a gang is bound before all of its ranks stood at the gate, unless its pods carry the plan
  themselves and are pinned as they are born;
- `whole`: a gang that was bound in part is whole, or gone, after `bind_s`;
- `capacity`: no node is over its allocatable in any device, foreign pods included;
- `halves`: never two gangs bound in part whose plans together are more than a node has;
- `overlap`: no two attempts of one run have bound pods at once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Json = Mapping[str, Any]
Key = tuple[str, int]
TERMINAL = frozenset({"Succeeded", "Failed"})
# Where a controller writes the number of a pod: those of Jobs, then those of StatefulSets.
INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold, of what, and the numbers."""

    rule: str
    subject: str
    detail: str


@dataclass(slots=True)
class _Pod:
    key: Key | None  # run and attempt; None for a foreign pod
    rank: int | None
    node: str
    devices: Counter[str]
    is_gated: bool
    is_alive: bool


@dataclass(slots=True)
class _Gang:
    size: int
    plan: tuple[str, ...]
    devices: Counter[str]
    is_born_pinned: bool
    gathered: set[int] = field(default_factory=set)
    bound: set[int] = field(default_factory=set)
    first_bound_s: float | None = None
    is_reported: bool = False

    @property
    def is_whole(self) -> bool:
        return len(self.bound) >= self.size


class Referee:
    """Follows one cluster. `domain` prefixes our labels; `bind_s` is T2 with what a busy machine adds to it."""

    def __init__(self, *, domain: str, bind_s: float) -> None:
        self._run, self._attempt = f"{domain}/run", f"{domain}/attempt"
        self._plan, self._gate = f"{domain}/plan", f"{domain}/placement"
        self._first_rank = f"{domain}/first-rank"
        self._bind_s = bind_s
        self._nodes: dict[str, Counter[str]] = {}
        self._pods: dict[str, _Pod] = {}
        self._gangs: dict[Key, _Gang] = {}

    def see(self, kind: str, change: str, body: Json, at_s: float) -> list[Violation]:
        """Take one event (of nodes, pods, jobs or statefulsets; ADDED, MODIFIED or DELETED); return what it broke."""
        if kind == "nodes":
            self._see_node(change, body)
            return []
        if kind in ("jobs", "statefulsets"):
            self._see_gang(change, body)
            return []
        return list(self._see_pod(change, body, at_s))

    def overdue(self, at_s: float) -> list[Violation]:
        """Return the gangs that are bound in part for too long; each is told once."""
        late = []
        for key, gang in self._partly_bound():
            if gang.first_bound_s is not None and at_s - gang.first_bound_s > self._bind_s and not gang.is_reported:
                gang.is_reported = True
                held_s = at_s - gang.first_bound_s
                late.append(
                    Violation("whole", _name(key), f"{len(gang.bound)} of {gang.size} ranks bound for {held_s:.0f} s")
                )
        return late

    def _see_node(self, change: str, body: Json) -> None:
        name = body["metadata"]["name"]
        if change == "DELETED":
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = _devices((body.get("status") or {}).get("allocatable") or {})

    def _see_gang(self, change: str, body: Json) -> None:
        key = self._key(body)
        if key is None:
            return
        if change == "DELETED":
            # Its pods may outlive it: they are still judged by overlap and capacity.
            self._gangs.pop(key, None)
        elif key not in self._gangs:
            spec = body["spec"]
            plan = self._plan_of(body)
            nodes = tuple(plan.split(",")) if plan else ()
            self._gangs[key] = _Gang(
                # The plan names the nodes of further sets of pods too, which are Jobs of their own.
                size=max(len(nodes), int(spec.get("completions") or spec.get("replicas") or 1)),
                plan=nodes,
                devices=_requests(spec["template"]["spec"]),
                is_born_pinned=bool(self._plan_of(spec["template"])),
            )

    def _see_pod(self, change: str, body: Json, at_s: float) -> Iterator[Violation]:
        uid = body["metadata"]["uid"]
        if change == "DELETED":
            self._pods.pop(uid, None)
            return
        before, pod = self._pods.get(uid), self._pod(body)
        self._pods[uid] = pod
        gang = self._gangs.get(pod.key) if pod.key else None
        if gang is not None and pod.rank is not None and pod.is_gated:
            gang.gathered.add(pod.rank)
        if not pod.node or not pod.is_alive or (before is not None and before.node):
            return
        if gang is not None and pod.rank is not None:
            yield from self._bind(pod, gang, at_s)
        yield from self._check_capacity(pod.node)
        yield from self._check_overlap(pod)

    def _bind(self, pod: _Pod, gang: _Gang, at_s: float) -> Iterator[Violation]:
        if not gang.is_born_pinned and len(gang.gathered) < gang.size:
            detail = f"rank {pod.rank} bound while {len(gang.gathered)} of {gang.size} ranks had come"
            yield Violation("gathered", _name(pod.key), detail)
        if pod.rank is not None:
            gang.bound.add(pod.rank)
            if pod.rank < len(gang.plan) and pod.node != gang.plan[pod.rank]:
                detail = f"rank {pod.rank} is bound to {pod.node} instead of {gang.plan[pod.rank]}"
                yield Violation("place", _name(pod.key), detail)
        if gang.first_bound_s is None:
            gang.first_bound_s = at_s
        yield from self._check_halves()

    def _check_capacity(self, node: str) -> Iterator[Violation]:
        allocatable = self._nodes.get(node)
        if allocatable is None:
            return
        used: Counter[str] = Counter()
        for pod in self._pods.values():
            if pod.node == node and pod.is_alive:
                used.update(pod.devices)
        for device, count in used.items():
            if count > allocatable[device]:
                yield Violation("capacity", node, f"{count} of {allocatable[device]} {device}")

    def _check_overlap(self, pod: _Pod) -> Iterator[Violation]:
        if pod.key is None:
            return
        run = pod.key[0]
        alive = {each.key[1] for each in self._pods.values() if each.key and each.key[0] == run and _holds(each)}
        for first, second in pairwise(sorted(alive)):
            yield Violation("overlap", run, f"attempts {first} and {second} have bound pods at once")

    def _check_halves(self) -> Iterator[Violation]:
        halves = list(self._partly_bound())
        if len(halves) < 2:
            return
        planned: dict[str, Counter[str]] = {}
        for _key, gang in halves:
            for node in gang.plan:
                planned.setdefault(node, Counter()).update(gang.devices)
        for node, wanted in planned.items():
            for device, count in wanted.items():
                if count > self._nodes.get(node, Counter())[device]:
                    names = ", ".join(_name(key) for key, _gang in halves)
                    yield Violation("halves", node, f"{names} together want {count} {device}")

    def _partly_bound(self) -> Iterator[tuple[Key, _Gang]]:
        holding = {pod.key for pod in self._pods.values() if _holds(pod)}
        for key, gang in self._gangs.items():
            if gang.bound and not gang.is_whole and key in holding:
                yield key, gang

    def _pod(self, body: Json) -> _Pod:
        spec, labels = body.get("spec") or {}, body["metadata"].get("labels") or {}
        index = next((labels[key] for key in INDEX_LABELS if key in labels), None)
        return _Pod(
            key=self._key(body),
            rank=int(index) + int(labels.get(self._first_rank, 0)) if index is not None else None,
            node=spec.get("nodeName") or "",
            devices=_requests(spec),
            is_gated=any(gate.get("name") == self._gate for gate in spec.get("schedulingGates") or ()),
            is_alive=(body.get("status") or {}).get("phase") not in TERMINAL,
        )

    def _plan_of(self, body: Json) -> str:
        metadata = body.get("metadata") or {}
        return str((metadata.get("annotations") or {}).get(self._plan) or "")

    def _key(self, body: Json) -> Key | None:
        labels = body["metadata"].get("labels") or {}
        run, attempt = labels.get(self._run), labels.get(self._attempt)
        return (run, int(attempt)) if run and attempt else None


def _holds(pod: _Pod) -> bool:
    return bool(pod.node) and pod.is_alive


def _requests(spec: Json) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        total.update(_devices({**(resources.get("limits") or {}), **(resources.get("requests") or {})}))
    return total


def _devices(amounts: Json) -> Counter[str]:
    """Whole devices: extended resources carry a domain, and are plain integers."""
    return Counter({name: int(text) for name, text in amounts.items() if "/" in name})


def _name(key: Key | None) -> str:
    return f"{key[0]}/{key[1]}" if key else "-"
