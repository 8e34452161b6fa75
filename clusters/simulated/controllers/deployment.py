"""The Deployment controller: one ReplicaSet per template, and rolling from the old ones to the new one."""

import hashlib
import math
from dataclasses import dataclass

import orjson

from clusters.simulated.api import Deletion
from clusters.simulated.clock import parse_stamp
from clusters.simulated.resources import DEPLOYMENTS, REPLICA_SETS, Obj
from clusters.simulated.store import Change, Key, copy_of
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_COMPONENT = "deployment-controller"
_HASH_LABEL = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How many pods a roll-out may have at most, and how many must stay available."""

    most: int
    least: int


class DeploymentController:
    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = WorkQueue(self._sync)
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(DEPLOYMENTS):
            self._queue.add(stored.key)

    def _on_change(self, change: Change) -> None:
        if change.resource is DEPLOYMENTS and change.type != "DELETED":
            self._queue.add(change.stored.key)
        elif change.resource is REPLICA_SETS:
            for owner in change.object["metadata"].get("ownerReferences") or ():
                if owner["kind"] == "Deployment":
                    self._queue.add((change.object["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        deployment = self._world.store.get(DEPLOYMENTS, *key)
        if deployment is None:
            return
        if not deployment["metadata"].get("deletionTimestamp"):
            current = self._current(deployment)
            if current is None and not deployment["spec"].get("paused"):
                current = self._create(deployment)
            if current is not None:
                self._roll(deployment, current, self._older(deployment, current))
                self._forget_old(deployment, current)
        self._write(deployment)

    def _roll(self, deployment: Obj, current: Obj, older: list[Obj]) -> None:
        wanted = deployment["spec"]["replicas"]
        running = sum(each["spec"]["replicas"] for each in older)
        if not running:
            self._scale(deployment, current, wanted)
        elif deployment["spec"]["strategy"]["type"] == "Recreate":
            for each in older:
                self._scale(deployment, each, 0)
            if not any((each.get("status") or {}).get("replicas") for each in older):
                self._scale(deployment, current, wanted)
        else:
            bounds = _bounds(deployment)
            grown = min(wanted, current["spec"]["replicas"] + max(0, bounds.most - running - _replicas(current)))
            if grown > _replicas(current):
                self._scale(deployment, current, grown)
            elif _replicas(current) > wanted:
                self._scale(deployment, current, wanted)
            self._shrink(deployment, older, bounds)

    def _shrink(self, deployment: Obj, older: list[Obj], bounds: _Bounds) -> None:
        """Old pods go as far as enough pods stay available; pods that are not available go first."""
        current = self._current(deployment)
        everything = older + ([current] if current else [])
        unavailable_new = _replicas(current) - _available(current) if current else 0
        total = sum(_replicas(each) for each in everything)
        room = total - bounds.least - unavailable_new
        if room <= 0:
            return
        for each in older:
            dead = min(_replicas(each) - _available(each), max(0, room))
            if dead > 0:
                room -= dead
                self._scale(deployment, each, _replicas(each) - dead)
        # Counts of available pods lag behind a scaling; the wanted numbers in `room` do not.
        spare = min(room, sum(_available(each) for each in everything) - bounds.least)
        for each in [self._world.store.get(REPLICA_SETS, *_key(old)) or old for old in older]:
            gone = min(_replicas(each), max(0, spare))
            if gone > 0:
                spare -= gone
                self._scale(deployment, each, _replicas(each) - gone)

    def _scale(self, deployment: Obj, replica_set: Obj, replicas: int) -> None:
        held = _replicas(replica_set)
        if held == replicas:
            return

        def edit(edited: Obj) -> None:
            edited["spec"]["replicas"] = replicas
            edited["metadata"]["generation"] = edited["metadata"].get("generation", 1) + 1

        verb = "up" if replicas > held else "down"
        text = f"Scaled {verb} replica set {replica_set['metadata']['name']} from {held} to {replicas}"
        self._world.recorder.record(DEPLOYMENTS, deployment, "ScalingReplicaSet", text, _COMPONENT)
        self._world.api.change(REPLICA_SETS, replica_set, edit)

    def _current(self, deployment: Obj) -> Obj | None:
        wanted = _template_hash(deployment)
        return next((each for each in self._owned(deployment) if _hash_of(each) == wanted), None)

    def _older(self, deployment: Obj, current: Obj) -> list[Obj]:
        """Still populated sets of earlier templates, oldest first."""
        uid = current["metadata"]["uid"]
        older = [each for each in self._owned(deployment) if each["metadata"]["uid"] != uid]
        return sorted(
            (each for each in older if _replicas(each) or (each.get("status") or {}).get("replicas")),
            key=_revision,
        )

    def _forget_old(self, deployment: Obj, current: Obj) -> None:
        uid = current["metadata"]["uid"]
        empty = [
            each
            for each in self._owned(deployment)
            if each["metadata"]["uid"] != uid and not _replicas(each) and not (each.get("status") or {}).get("replicas")
        ]
        surplus = len(empty) - deployment["spec"].get("revisionHistoryLimit", 10)
        for each in sorted(empty, key=_revision)[: max(0, surplus)]:
            options = Deletion(uid=each["metadata"]["uid"])
            self._world.api.delete(REPLICA_SETS, *_key(each), options)

    def _create(self, deployment: Obj) -> Obj:
        meta, spec = deployment["metadata"], deployment["spec"]
        digest = _template_hash(deployment)
        template, selector = copy_of(spec["template"]), copy_of(spec["selector"])
        template["metadata"].setdefault("labels", {})[_HASH_LABEL] = digest
        selector.setdefault("matchLabels", {})[_HASH_LABEL] = digest
        older = self._owned(deployment)
        revision = max((_revision(each) for each in older), default=0) + 1
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"]}
        body = {
            "metadata": {
                "name": f"{meta['name']}-{digest}",
                "labels": dict(template["metadata"]["labels"]),
                "annotations": {_REVISION: str(revision)},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": {
                "replicas": 0,
                "selector": selector,
                "template": template,
                "minReadySeconds": spec.get("minReadySeconds", 0),
            },
        }
        return self._world.api.create(REPLICA_SETS, meta["namespace"], body)

    def _owned(self, deployment: Obj) -> list[Obj]:
        return [each for _, each in self._world.store.owned_by(deployment["metadata"]["uid"], REPLICA_SETS)]

    def _write(self, deployment: Obj) -> None:
        owned, current = self._owned(deployment), self._current(deployment)
        totals = {
            name: sum((each.get("status") or {}).get(name, 0) for each in owned)
            for name in ("replicas", "readyReplicas", "availableReplicas")
        }
        spec = deployment["spec"]
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            **totals,
            "updatedReplicas": (current.get("status") or {}).get("replicas", 0) if current else 0,
            "unavailableReplicas": max(0, max(spec["replicas"], totals["replicas"]) - totals["availableReplicas"]),
        }
        kept = {name: value for name, value in status.items() if value}
        kept["conditions"] = self._conditions(deployment, status)
        self._world.api.change(DEPLOYMENTS, deployment, lambda edited: edited.update(status=kept))
        revision = str(_revision(current)) if current else ""
        if revision:
            self._world.api.change(DEPLOYMENTS, deployment, lambda edited: _note_revision(edited, revision))

    def _conditions(self, deployment: Obj, status: dict[str, int]) -> list[Obj]:
        wanted, now = deployment["spec"]["replicas"], self._world.clock.stamp()
        held = {each["type"]: each for each in (deployment.get("status") or {}).get("conditions") or ()}
        enough = status["availableReplicas"] >= _bounds(deployment).least
        name = deployment["metadata"]["name"]
        complete = status["updatedReplicas"] == wanted == status["availableReplicas"] == status["replicas"]
        available = (
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
            if enough
            else ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        )
        progressing = (
            ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
            if complete
            else ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
        )
        if not complete and self._stalled(deployment, held.get("Progressing"), status):
            text = f'ReplicaSet of "{name}" has timed out progressing.'
            progressing = ("False", "ProgressDeadlineExceeded", text)
        rows = (("Available", available), ("Progressing", progressing))
        return [_fresh(held.get(kind), kind, row, now) for kind, row in rows]

    def _stalled(self, deployment: Obj, held: Obj | None, status: dict[str, int]) -> bool:
        """No change of the counts for as long as the progress deadline allows."""
        before = deployment.get("status") or {}
        moved = any(
            before.get(name, 0) != status[name] for name in ("replicas", "updatedReplicas", "availableReplicas")
        )
        if held is None or moved or held["reason"] == "NewReplicaSetAvailable":
            return False
        passed = self._world.clock.simulated(self._world.clock.now() - parse_stamp(held["lastUpdateTime"]))
        left = deployment["spec"]["progressDeadlineSeconds"] - passed
        if left > 0:
            self._queue.add_after(_key(deployment), self._world.clock.real(left) + 0.01)
        return bool(left <= 0)


def _bounds(deployment: Obj) -> _Bounds:
    wanted = deployment["spec"]["replicas"]
    rolling = deployment["spec"]["strategy"].get("rollingUpdate")
    if rolling is None:
        return _Bounds(wanted, wanted)
    surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return _Bounds(wanted + surge, max(0, wanted - unavailable))


def _share(value: int | str, wanted: int, *, up: bool) -> int:
    if isinstance(value, int) or not value.endswith("%"):
        return int(value)
    part = wanted * int(value[:-1]) / 100
    return math.ceil(part) if up else math.floor(part)


def _template_hash(deployment: Obj) -> str:
    raw = orjson.dumps(deployment["spec"]["template"], option=orjson.OPT_SORT_KEYS)
    number = int.from_bytes(hashlib.sha256(raw).digest()[:6])
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(letters[number // len(letters) ** place % len(letters)] for place in range(10))


def _hash_of(replica_set: Obj) -> str:
    return str((replica_set["metadata"].get("labels") or {}).get(_HASH_LABEL, ""))


def _revision(replica_set: Obj) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION, "0"))


def _note_revision(deployment: Obj, revision: str) -> None:
    deployment["metadata"].setdefault("annotations", {})[_REVISION] = revision


def _replicas(replica_set: Obj) -> int:
    return int(replica_set["spec"]["replicas"])


def _available(replica_set: Obj) -> int:
    return int((replica_set.get("status") or {}).get("availableReplicas", 0))


def _key(obj: Obj) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _fresh(held: Obj | None, kind: str, row: tuple[str, str, str], now: str) -> Obj:
    if held is not None and (held["status"], held["reason"], held["message"]) == row:
        return held
    since = held["lastTransitionTime"] if held is not None and held["status"] == row[0] else now
    return {
        "type": kind,
        "status": row[0],
        "reason": row[1],
        "message": row[2],
        "lastUpdateTime": now,
        "lastTransitionTime": since,
    }
