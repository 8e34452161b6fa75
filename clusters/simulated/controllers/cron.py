"""The CronJob controller: makes Jobs when they come due, keeps the list of those under way, clears the history."""

from collections.abc import Iterable

from clusters.simulated.api import Deletion
from clusters.simulated.clock import parse_stamp, rfc3339
from clusters.simulated.controllers.job import controller_of, finished
from clusters.simulated.cron import Cron, next_due, parse
from clusters.simulated.errors import ApiError
from clusters.simulated.resources import CRON_JOBS, JOBS, Obj
from clusters.simulated.store import Change, Key, copy_of
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_COMPONENT = "cronjob-controller"
_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# As the real controller: it looks a moment after the minute has begun.
_LATE_S = 0.1
_RETRY_S = 10.0
# So many missed times are warned of where no deadline bounds them.
_MANY_MISSED = 100
# How far back the last missed time is looked for, wider where there was none.
_WINDOWS_S = (7_200.0, 7 * 86_400.0, 400 * 86_400.0, 10 * 366 * 86_400.0)


class CronJobController:
    """Times are those of the clock on the wall, whatever the factor of the simulation."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue = WorkQueue(self._sync)
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        for stored in self._world.store.all(CRON_JOBS):
            self._queue.add(stored.key)

    def _on_change(self, change: Change) -> None:
        if change.resource is CRON_JOBS and change.type != "DELETED":
            self._queue.add(change.stored.key)
        elif change.resource is JOBS:
            owner = controller_of(change.object)
            if owner and owner["kind"] == "CronJob":
                self._queue.add((change.object["metadata"]["namespace"], owner["name"]))

    def _sync(self, key: Key) -> None:
        held = self._world.store.get(CRON_JOBS, *key)
        if held is None:
            return
        draft = copy_of(held)
        draft.setdefault("status", {})
        jobs = self._jobs_of(held)
        self._note_ends(draft, jobs)
        if not held["metadata"].get("deletionTimestamp") and not held["spec"].get("suspend"):
            self._make_due(draft)
        self._write(held, draft)
        self._clear_history(held, self._jobs_of(held))

    def _note_ends(self, draft: Obj, jobs: list[Obj]) -> None:
        """Take off the list what has ended, and what is not there any more."""
        by_uid, status = {job["metadata"]["uid"]: job for job in jobs}, draft["status"]
        kept = []
        for listed in status.get("active") or ():
            job = by_uid.get(listed["uid"])
            if job is None:
                text = f"Active job went missing: {listed['name']}"
                self._world.recorder.record(CRON_JOBS, draft, "MissingJob", text, _COMPONENT)
            elif finished(job):
                text = f"Saw completed job: {listed['name']}, condition: {_end_of(job)}"
                self._world.recorder.record(CRON_JOBS, draft, "SawCompletedJob", text, _COMPONENT)
            else:
                kept.append(listed)
        status["active"] = kept
        ended = [job["status"]["completionTime"] for job in jobs if (job.get("status") or {}).get("completionTime")]
        if ended:
            status["lastSuccessfulTime"] = max([*ended, status.get("lastSuccessfulTime", "")])
        listed_uids = {each["uid"] for each in kept}
        for job in jobs:
            if not finished(job) and job["metadata"]["uid"] not in listed_uids:
                text = f"Saw a job that the controller did not create or forgot: {job['metadata']['name']}"
                self._world.recorder.warn(CRON_JOBS, draft, "UnexpectedJob", text, _COMPONENT)

    def _make_due(self, draft: Obj) -> None:
        now, spec, status = self._world.clock.now(), draft["spec"], draft["status"]
        cron, zone = parse(spec["schedule"]), spec.get("timeZone") or "Etc/UTC"
        due, following = self._due(draft, cron, zone, now)
        if following is not None:
            self._queue.add_after(_key(draft), following - now + _LATE_S)
        if due is None or status.get("lastScheduleTime") == rfc3339(due):
            return
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < now:
            text = f"Missed scheduled time to start a job: {rfc3339(due)}"
            self._world.recorder.warn(CRON_JOBS, draft, "MissSchedule", text, _COMPONENT)
            return
        if status["active"] and spec["concurrencyPolicy"] == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._world.recorder.record(CRON_JOBS, draft, "JobAlreadyActive", text, _COMPONENT)
            return
        if spec["concurrencyPolicy"] == "Replace":
            self._replace(draft)
        self._create(draft, due)

    def _due(self, draft: Obj, cron: Cron, zone: str, now: float) -> tuple[float | None, float | None]:
        """The last time that came due and was not seen to, and the next one to come."""
        since = parse_stamp(draft["status"].get("lastScheduleTime") or draft["metadata"]["creationTimestamp"])
        deadline = draft["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, now - deadline)
        due, missed, moment = None, 0, None
        for window in _WINDOWS_S:
            start = max(since, now - window)
            moment = next_due(cron, zone, start)
            while moment is not None and moment <= now:
                due, missed = moment, missed + 1
                moment = next_due(cron, zone, moment)
            if due is not None or start == since:
                break
        if missed > _MANY_MISSED and deadline is None:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._world.recorder.warn(CRON_JOBS, draft, "TooManyMissedTimes", text, _COMPONENT)
        return due, moment

    def _replace(self, draft: Obj) -> None:
        for listed in draft["status"]["active"]:
            self._delete(draft, listed["name"], listed["uid"])
        draft["status"]["active"] = []

    def _create(self, draft: Obj, due: float) -> None:
        meta = draft["metadata"]
        try:
            job = self._world.api.create(JOBS, meta["namespace"], new_job(draft, due))
        except ApiError as error:
            if error.code != 409:
                text = f"Error creating job: {error}"
                self._world.recorder.warn(CRON_JOBS, draft, "FailedCreate", text, _COMPONENT)
                self._queue.add_after(_key(draft), _RETRY_S)
                return
            job = self._world.api.read(JOBS, meta["namespace"], _job_name(draft, due))
        name = job["metadata"]["name"]
        self._world.recorder.record(CRON_JOBS, draft, "SuccessfulCreate", f"Created job {name}", _COMPONENT)
        draft["status"]["active"].append(
            {
                "kind": "Job",
                "apiVersion": "batch/v1",
                "namespace": meta["namespace"],
                "name": name,
                "uid": job["metadata"]["uid"],
                "resourceVersion": job["metadata"]["resourceVersion"],
            }
        )
        draft["status"]["lastScheduleTime"] = rfc3339(due)

    def _clear_history(self, held: Obj, jobs: Iterable[Obj]) -> None:
        over = [job for job in jobs if finished(job) and not job["metadata"].get("deletionTimestamp")]
        over.sort(key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))
        for kind, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            ended = [job for job in over if _end_of(job) == kind]
            for job in ended[: max(0, len(ended) - held["spec"][limit])]:
                self._delete(held, job["metadata"]["name"], job["metadata"]["uid"])

    def _delete(self, held: Obj, name: str, uid: str) -> None:
        try:
            options = Deletion(policy="Background", uid=uid)
            self._world.api.delete(JOBS, held["metadata"]["namespace"], name, options)
        except ApiError:
            return
        self._world.recorder.record(CRON_JOBS, held, "SuccessfulDelete", f"Deleted job {name}", _COMPONENT)

    def _write(self, held: Obj, draft: Obj) -> None:
        status = {name: value for name, value in draft["status"].items() if value}
        self._world.api.change(CRON_JOBS, held, lambda edited: edited.update(status=status))

    def _jobs_of(self, held: Obj) -> list[Obj]:
        uid = held["metadata"]["uid"]
        owned = [job for _, job in self._world.store.owned_by(uid, JOBS)]
        return [job for job in owned if (controller_of(job) or {}).get("uid") == uid]


def new_job(cron_job: Obj, due: float) -> Obj:
    """The Job for one time: its name ends with the minute since 1970."""
    meta, template = cron_job["metadata"], copy_of(cron_job["spec"]["jobTemplate"])
    given = template.get("metadata") or {}
    job_meta = {
        "name": _job_name(cron_job, due),
        "namespace": meta["namespace"],
        "labels": given.get("labels") or {},
        "annotations": {**(given.get("annotations") or {}), _TIMESTAMP: rfc3339(due)},
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    return {"metadata": job_meta, "spec": template["spec"]}


def _job_name(cron_job: Obj, due: float) -> str:
    return f"{cron_job['metadata']['name']}-{int(due) // 60}"


def _end_of(job: Obj) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    ends = (each["type"] for each in conditions if each["status"] == "True" and each["type"] in ("Complete", "Failed"))
    return next(ends, "")


def _key(cron_job: Obj) -> Key:
    return cron_job["metadata"]["namespace"], cron_job["metadata"]["name"]
