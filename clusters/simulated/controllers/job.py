"""The Job controller: makes pods, counts their ends, and settles the Job's conditions."""

from dataclasses import dataclass

from clusters.simulated.api import Deletion
from clusters.simulated.clock import parse_stamp
from clusters.simulated.containers import INDEX_LABEL
from clusters.simulated.controllers.tally import FINALIZER, Tally, format_indexes, index_of, is_done, take
from clusters.simulated.errors import ApiError
from clusters.simulated.resources import JOBS, PODS, Obj
from clusters.simulated.store import Change, Key, copy_of
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_COMPONENT = "job-controller"
_TERMINAL = ("Succeeded", "Failed")
# A failed pod is replaced after 10 s, 20 s, 40 s ... at most 10 minutes of simulated time.
_BACKOFF_S, _BACKOFF_LIMIT_S = 10.0, 600.0

# Pods of a gang change in bursts: one look at the Job for all of them.
_GATHER_S = 0.05


@dataclass(slots=True)
class _Backoff:
    failures: int = 0
    last: float = 0.0


class JobController:
    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = WorkQueue(self._sync)
        self._orphans = WorkQueue(self._release_orphan)
        self._failures: dict[str, _Backoff] = {}
        self._refusals: dict[str, int] = {}
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(JOBS):
            self._queue.add(stored.key)
        for stored in self._world.store.all(PODS):
            self._orphans.add(stored.key)

    def _on_change(self, change: Change) -> None:
        meta = change.object["metadata"]
        if change.resource is JOBS:
            self._queue.add(change.stored.key)
            if change.type == "DELETED":
                self._failures.pop(meta["uid"], None)
                self._refusals.pop(meta["uid"], None)
        elif change.resource is PODS:
            owner = controller_of(change.object)
            if owner and owner["kind"] == "Job":
                self._queue.add_after((meta["namespace"], owner["name"]), _GATHER_S)
            if FINALIZER in (meta.get("finalizers") or ()):
                self._orphans.add(change.stored.key)

    def _sync(self, key: Key) -> None:
        job = self._world.store.get(JOBS, *key)
        if job is None or job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return
        pods = self._pods_of(job)
        if job["metadata"].get("deletionTimestamp"):
            self._release([pod for pod in pods if pod["metadata"].get("deletionTimestamp") or _has_ended(pod)])
        elif finished(job):
            self._release(pods)
            self._expire(job)
        else:
            self._advance(job, pods)

    def _advance(self, job: Obj, pods: list[Obj]) -> None:
        tally = take(job, pods)
        draft = copy_of(job)
        status = draft["status"]
        self._note_failures(job, tally)
        self._note_suspension(draft)
        if not draft["spec"].get("suspend") and "startTime" not in status:
            status["startTime"] = self._world.clock.stamp()
        status.update(failed=tally.failed, succeeded=tally.succeeded)
        if job["spec"].get("completionMode") == "Indexed":
            status["completedIndexes"] = format_indexes(tally.done)
        target = self._failure(draft, tally)
        if target:
            self._fail(draft, tally, target)
        elif is_done(job, tally) or _condition(draft, "SuccessCriteriaMet"):
            self._complete(draft, tally)
        else:
            self._manage(job, draft, tally)
        self._write(job, draft, tally)

    def _note_failures(self, job: Obj, tally: Tally) -> None:
        fresh = tally.failed - (job.get("status") or {}).get("failed", 0)
        if fresh > 0:
            held = self._failures.setdefault(job["metadata"]["uid"], _Backoff())
            held.failures += fresh
            held.last = self._world.clock.now()

    def _note_suspension(self, draft: Obj) -> None:
        """The Suspended condition follows the spec; a resumed Job starts its time anew."""
        suspended = bool(draft["spec"].get("suspend"))
        held = _condition(draft, "Suspended")
        if suspended and not held:
            self._set(draft, "Suspended", ("JobSuspended", "Job suspended"))
            self._world.recorder.record(JOBS, draft, "Suspended", "Job suspended", _COMPONENT)
        elif not suspended and held:
            self._set(draft, "Suspended", ("JobResumed", "Job resumed"), value=False)
            draft["status"]["startTime"] = self._world.clock.stamp()
            self._world.recorder.record(JOBS, draft, "Resumed", "Job resumed", _COMPONENT)

    def _failure(self, draft: Obj, tally: Tally) -> tuple[str, str] | None:
        """Reason and message of a Job that has to fail."""
        held = _condition(draft, "FailureTarget")
        if held:
            return held["reason"], held["message"]
        spec = draft["spec"]
        if tally.fail_job:
            return "PodFailurePolicy", tally.fail_job
        limit, restarts = spec["backoffLimit"], tally.restarts
        in_place = spec["template"]["spec"].get("restartPolicy") == "OnFailure"
        if tally.failed > limit or (in_place and restarts > 0 and restarts >= limit):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if self._past_deadline(draft):
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        return None

    def _past_deadline(self, draft: Obj) -> bool:
        deadline, start = draft["spec"].get("activeDeadlineSeconds"), draft["status"].get("startTime")
        if deadline is None or start is None or draft["spec"].get("suspend"):
            return False
        passed = self._world.clock.simulated(self._world.clock.now() - parse_stamp(start))
        if passed >= deadline:
            return True
        self._queue.add_after(_key(draft), self._world.clock.real(deadline - passed) + 0.01)
        return False

    def _fail(self, draft: Obj, tally: Tally, target: tuple[str, str]) -> None:
        self._set(draft, "FailureTarget", target)
        self._delete(draft, tally.active)
        if self._all_ended(draft):
            self._set(draft, "Failed", target)
            self._world.recorder.warn(JOBS, draft, target[0], target[1], _COMPONENT)

    def _complete(self, draft: Obj, tally: Tally) -> None:
        why = ("CompletionsReached", "Reached expected number of succeeded pods")
        self._set(draft, "SuccessCriteriaMet", why)
        self._delete(draft, tally.active)
        if self._all_ended(draft):
            self._set(draft, "Complete", why)
            draft["status"]["completionTime"] = self._world.clock.stamp()
            self._world.recorder.record(JOBS, draft, "Completed", "Job completed", _COMPONENT)

    def _manage(self, job: Obj, draft: Obj, tally: Tally) -> None:
        if draft["spec"].get("suspend"):
            # Pods that a suspension ends count neither as failed nor as succeeded.
            self._release(tally.active)
            self._delete(draft, tally.active)
            return
        spec = job["spec"]
        room = spec["parallelism"]
        if spec.get("completions") is not None:
            room = min(room, spec["completions"] - tally.succeeded)
        elif tally.succeeded:
            room = min(room, len(tally.active))
        if len(tally.active) > room:
            surplus = sorted(tally.active, key=_expendable)[: len(tally.active) - room]
            self._release(surplus)
            self._delete(draft, surplus)
            return
        missing = room - len(tally.active)
        if spec.get("podReplacementPolicy") == "Failed":
            missing -= len(tally.terminating)
        if missing > 0 and not self._backs_off(job):
            self._create(job, tally, missing)

    def _backs_off(self, job: Obj) -> bool:
        held = self._failures.get(job["metadata"]["uid"])
        if held is None:
            return False
        wait = min(_BACKOFF_S * 2 ** (held.failures - 1), _BACKOFF_LIMIT_S)
        left = held.last + self._world.clock.real(wait) - self._world.clock.now()
        if left > 0:
            self._queue.add_after(_key(job), left + 0.01)
        return left > 0

    def _create(self, job: Obj, tally: Tally, count: int) -> None:
        uid = job["metadata"]["uid"]
        for index in self._indexes(job, tally, count):
            try:
                pod = self._world.api.create(PODS, job["metadata"]["namespace"], new_pod(job, index))
            except ApiError as error:
                self._world.recorder.warn(JOBS, job, "FailedCreate", f"Error creating: {error}", _COMPONENT)
                tries = self._refusals[uid] = self._refusals.get(uid, 0) + 1
                self._queue.add_after(_key(job), self._world.clock.real(min(600.0, 2.0 ** (tries - 1))))
                return
            text = f"Created pod: {pod['metadata']['name']}"
            self._world.recorder.record(JOBS, job, "SuccessfulCreate", text, _COMPONENT)
        self._refusals.pop(uid, None)

    def _indexes(self, job: Obj, tally: Tally, count: int) -> list[int | None]:
        if job["spec"].get("completionMode") != "Indexed":
            return [None] * count
        busy = tally.active
        if job["spec"].get("podReplacementPolicy") == "Failed":
            busy = busy + tally.terminating
        taken = tally.done | {index_of(pod) for pod in busy}
        free = (index for index in range(job["spec"]["completions"]) if index not in taken)
        return [index for index, _ in zip(free, range(count), strict=False)]

    def _write(self, job: Obj, draft: Obj, tally: Tally) -> None:
        """Status first, then the finalizers of what it counts, so that no end is lost."""
        live = [pod for pod in self._pods_of(job) if not _has_ended(pod)]
        active = [pod for pod in live if not pod["metadata"].get("deletionTimestamp")]
        status = draft["status"]
        status.update(
            active=len(active),
            ready=sum(map(_is_ready, active)),
            terminating=len(live) - len(active),
            uncountedTerminatedPods={},
        )
        for field in ("active", "failed", "succeeded", "completedIndexes"):
            if not status.get(field):
                status.pop(field, None)
        self._world.api.change(JOBS, job, lambda edited: edited.update(status=status))
        self._release(tally.counted)

    def _all_ended(self, job: Obj) -> bool:
        return all(_has_ended(pod) for pod in self._pods_of(job))

    def _delete(self, job: Obj, pods: list[Obj]) -> None:
        for pod in pods:
            meta = pod["metadata"]
            held = self._world.store.get(PODS, meta["namespace"], meta["name"])
            if held is None or held["metadata"].get("deletionTimestamp"):
                continue
            options = Deletion(policy="Background", uid=meta["uid"])
            self._world.api.delete(PODS, meta["namespace"], meta["name"], options)
            text = f"Deleted pod: {meta['name']}"
            self._world.recorder.record(JOBS, job, "SuccessfulDelete", text, _COMPONENT)

    def _release(self, pods: list[Obj]) -> None:
        for pod in pods:
            self._world.api.change(PODS, pod, _drop_finalizer)

    def _release_orphan(self, key: Key) -> None:
        """A pod whose Job is gone must not wait for it."""
        pod = self._world.store.get(PODS, *key)
        if pod is None or FINALIZER not in (pod["metadata"].get("finalizers") or ()):
            return
        owner = controller_of(pod)
        job = self._world.store.get(JOBS, key[0], owner["name"]) if owner else None
        if owner is None or job is None or job["metadata"]["uid"] != owner["uid"]:
            self._release([pod])

    def _expire(self, job: Obj) -> None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        done = _condition(job, "Complete") or _condition(job, "Failed")
        if ttl is None or done is None:
            return
        passed = self._world.clock.simulated(self._world.clock.now() - parse_stamp(done["lastTransitionTime"]))
        if passed < ttl:
            self._queue.add_after(_key(job), self._world.clock.real(ttl - passed) + 0.01)
            return
        meta = job["metadata"]
        options = Deletion(policy="Foreground", uid=meta["uid"])
        self._world.api.delete(JOBS, meta["namespace"], meta["name"], options)

    def _pods_of(self, job: Obj) -> list[Obj]:
        uid = job["metadata"]["uid"]
        owned = [pod for _, pod in self._world.store.owned_by(uid, PODS)]
        return [pod for pod in owned if (controller_of(pod) or {}).get("uid") == uid]

    def _set(self, draft: Obj, kind: str, why: tuple[str, str], *, value: bool = True) -> None:
        conditions = draft["status"].setdefault("conditions", [])
        word, now = "True" if value else "False", self._world.clock.stamp()
        held = next((each for each in conditions if each["type"] == kind), None)
        if held is not None and held["status"] == word:
            return
        fresh = {
            "type": kind,
            "status": word,
            "reason": why[0],
            "message": why[1],
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }
        if held is None:
            conditions.append(fresh)
        else:
            conditions[conditions.index(held)] = fresh


def new_pod(job: Obj, index: int | None) -> Obj:
    """The pod that the Job's template describes, for one completion index or for none."""
    meta, template = job["metadata"], copy_of(job["spec"]["template"])
    pod_meta = template.get("metadata") or {}
    name, spec = meta["name"], template["spec"]
    pod_meta["generateName"] = f"{name}-"
    pod_meta["finalizers"] = [*(pod_meta.get("finalizers") or ()), FINALIZER]
    pod_meta["ownerReferences"] = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    if index is not None:
        pod_meta["generateName"] = f"{name}-{index}-"
        pod_meta.setdefault("labels", {})[INDEX_LABEL] = str(index)
        pod_meta.setdefault("annotations", {})[INDEX_LABEL] = str(index)
        spec.setdefault("hostname", f"{name}-{index}")
        for container in (spec.get("initContainers") or []) + spec["containers"]:
            _tell_index(container)
    return {"metadata": pod_meta, "spec": spec}


def controller_of(obj: Obj) -> Obj | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def finished(job: Obj) -> bool:
    return bool(_condition(job, "Complete") or _condition(job, "Failed"))


def _tell_index(container: Obj) -> None:
    env = container.setdefault("env", [])
    if not any(each.get("name") == "JOB_COMPLETION_INDEX" for each in env):
        field = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_LABEL}']"}
        env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": field}})


def _condition(job: Obj, kind: str) -> Obj | None:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), None)


def _key(job: Obj) -> Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _has_ended(pod: Obj) -> bool:
    return pod["status"].get("phase") in _TERMINAL


def _is_ready(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _expendable(pod: Obj) -> tuple[bool, bool, bool]:
    """Sorts what to delete first: without a node, then pending, then not ready."""
    return (bool(pod["spec"].get("nodeName")), pod["status"].get("phase") == "Running", _is_ready(pod))


def _drop_finalizer(pod: Obj) -> None:
    meta = pod["metadata"]
    kept = [each for each in meta.get("finalizers") or () if each != FINALIZER]
    meta["finalizers"] = kept
    if not kept:
        del meta["finalizers"]
