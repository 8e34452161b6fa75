"""Schedules on their cluster: one CronJob, whose Jobs are taken into our queue as they are made."""

import contextlib
from datetime import UTC, datetime

from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import AlreadyExists, Conflict, Invalid, NotFound, Refused
from clusters.manifests import patches
from clusters.models import ObservedObject
from jobs import transitions
from jobs.dispatch import render, run, stop
from jobs.dispatch.progress import advance
from jobs.dispatch.view import View
from jobs.models import Attempt, Job
from jobs.services import control, schedules
from jobs.transitions import Event
from portal.core.audit import SYSTEM

State = Job.State
# A schedule whose runs may overlap shall not fill the queue of its team while nothing is free.
MOST_WAITING = 10
REVIEW_S = 15.0
# Behind the CronJob's name its controller writes the minute for which a Job was made, since 1970.
MINUTE_DIGITS = 8
ENDED = frozenset({"Complete", "Failed"})
GONE = stop.Cause(code=Job.Outcome.CANCELLED, message="its Job was deleted on the cluster")


def attach(view: View, gateway: Gateway) -> None:
    """S2: the Service of its gangs. It belongs to no object: runs outlive their schedule and need it."""
    for kind, body in render.beside_main(view):
        try:
            gateway.create(kind, view.attempt.namespace, body)
        except AlreadyExists:
            continue  # by an earlier try of this same step
        except (Refused, Invalid, NotFound) as refusal:
            return stop.begin(view, stop.Cause(code=Job.Outcome.REFUSED, message=str(refusal)))
    return advance(view, step=Attempt.Step.ATTACHED, due_s=0)


def begin(view: View, _gateway: Gateway) -> None:
    """The CronJob stands: from now on the cluster makes its Jobs."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    made = Event("schedule_made", {"cluster": view.cluster.name, "name": view.attempt.object_name})
    with transaction.atomic():
        advance(view, step=Attempt.Step.RUNNING, due_s=0, started_at=view.now)
        transitions.move(view.job, frm=State.ADMITTED, to=State.STARTING, event=made)
        transitions.move(
            view.job, frm=State.STARTING, to=State.RUNNING, event=Event("schedule_on"), started_at=view.now
        )
    return None


def review(view: View, gateway: Gateway) -> None:
    """Take what the cluster made into the queue, clear away what is over, and bring the switch in line."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if run.is_deleted(view, gateway):
        return stop.begin(view, stop.again("the object was deleted on the cluster"))
    if view.object is not None and view.object.warning:
        schedules.tell_warning(schedule=view.job, message=view.object.warning)
    _switch(view, gateway)
    _take_or_clear(view, gateway)
    _drop_lost(view)
    return advance(view, due_s=REVIEW_S)


def pursue(view: View, gateway: Gateway) -> None:
    """S9: delete the CronJob alone. The runs that it made go on, and are cancelled one by one if at all."""
    place = (view.kind, view.attempt.namespace, view.attempt.object_name)
    try:
        found = gateway.get(*place)
    except NotFound:
        return stop.finish(view)
    if not stop.is_ours(found, view):
        return stop.finish(view)
    if "deletionTimestamp" not in found["metadata"]:
        with contextlib.suppress(NotFound, Conflict):
            gateway.delete(*place, uid=found["metadata"]["uid"], propagation="Orphan")
    return advance(view, due_s=0.5)


def _switch(view: View, gateway: Gateway) -> None:
    seen = view.object
    if seen is None or seen.is_suspended == view.job.is_paused:
        return
    ops = patches.pause(seen.uid, is_paused=view.job.is_paused)
    with contextlib.suppress(NotFound, Invalid):
        gateway.patch_json(view.kind, seen.namespace, seen.name, ops)


def _take_or_clear(view: View, gateway: Gateway) -> None:
    """Look at each Job that carries the schedule's own labels still: at its start it gets those of its run."""
    made = [each for each in view.others if each.owner_uid == view.attempt.object_uid and not each.is_deleting]
    known = {row.adopts: row for row in Job.objects.filter(adopts__in=[each.uid for each in made])}
    for each in sorted(made, key=lambda row: row.name):
        found = known.get(each.uid)
        if found is None and not _is_over(each):
            _take(view, gateway, each)
        elif found is not None and found.is_final and not _is_over(each):
            # As long as it stands, the cluster counts it as a run under way.
            _delete(gateway, each)


def _take(view: View, gateway: Gateway, made: ObservedObject) -> None:
    due_at = due_at_of(made.name, view.attempt.object_name)
    alive = list(schedules.runs_of(view.job).exclude(state__in=Job.FINAL).order_by("pk"))
    concurrency = view.job.spec["schedule"]["concurrency"]
    if concurrency == "forbid" and alive:
        # The cluster sees to that itself, but knows nothing of a run that we start once more.
        _delete(gateway, made)
        return schedules.tell_skipped(schedule=view.job, code="run_forbidden", due_at=due_at, run=alive[0].full_name)
    waiting = [row for row in alive if row.state == State.QUEUED]
    if concurrency == "allow" and len(waiting) >= MOST_WAITING:
        _delete(gateway, made)
        return schedules.tell_skipped(schedule=view.job, code="run_crowded", due_at=due_at, waiting=len(waiting))
    for row in alive if concurrency == "replace" else ():
        if row.cancel_requested_at is None:
            control.cancel_job(actor=SYSTEM, job=row)
    schedules.take_run(schedule=view.job, attempt=view.attempt, uid=made.uid, name=made.name, due_at=due_at)
    return None


def due_at_of(name: str, schedule: str) -> datetime | None:
    """Return the time for which a Job was made, which is in its name; None where a person made it."""
    minute = name.removeprefix(f"{schedule}-")
    if len(minute) != MINUTE_DIGITS or not (minute.isascii() and minute.isdigit()):
        return None
    return datetime.fromtimestamp(int(minute) * 60, UTC)


def _drop_lost(view: View) -> None:
    """End the runs that wait for a place and whose Job somebody deleted."""
    waiting = schedules.runs_of(view.job).filter(state=State.QUEUED, attempts_made=0)
    lost = ObservedObject.objects.filter(cluster=view.cluster, uid__in=waiting.values("adopts")).exclude(gone_at=None)
    for row in waiting.filter(adopts__in=lost.values("uid")):
        schedules.drop_run(row)


def _is_over(made: ObservedObject) -> bool:
    conditions = made.status.get("conditions") or []
    return any(each.get("status") == "True" and each.get("type") in ENDED for each in conditions)


def _delete(gateway: Gateway, made: ObservedObject) -> None:
    with contextlib.suppress(NotFound, Conflict):
        gateway.delete("jobs", made.namespace, made.name, uid=made.uid, propagation="Background")


def take_over(view: View, gateway: Gateway) -> None:
    """S1 of a run that a schedule made: its Job is there, suspended; give it the labels of the run."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    attempt = view.attempt
    try:
        found = gateway.get("jobs", attempt.namespace, attempt.object_name)
    except NotFound:
        found = {"metadata": {"uid": ""}}
    if found["metadata"]["uid"] != view.job.adopts or "deletionTimestamp" in found["metadata"]:
        return stop.begin(view, GONE)
    try:
        gateway.patch_json(
            "jobs", attempt.namespace, attempt.object_name, patches.adopt(found, render.run_labels(view))
        )
    except NotFound:
        return stop.begin(view, GONE)
    except Invalid:
        return stop.begin(view, stop.again("the object changed on the cluster"))
    return advance(view, step=Attempt.Step.CREATED, due_s=0, object_uid=view.job.adopts)
