"""S7 and S8: watch a running gang and settle its end."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import NotFound
from clusters.models import NodeFault, ObservedPod
from clusters.watch.diagnose import PodView, pod_view
from clusters.watch.reading import PODS
from jobs import transitions
from jobs.dispatch import render, sets, stop, verdict
from jobs.dispatch.faults import of_node, suspected
from jobs.dispatch.progress import advance
from jobs.dispatch.stop import Cause
from jobs.dispatch.verdict import Verdict
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding
from jobs.transitions import Event
from portal.core.enqueue import enqueue

State = Job.State
Step = Attempt.Step

# The watcher wakes an attempt at once; this look is for a hint that was lost.
REVIEW_S = 15.0
ENDING = (State.STARTING, State.RUNNING)
# Stops by the infrastructure, which cost the user none of the retries.
FREE_CODES = ("", Job.Outcome.NODE_LOST, Job.Outcome.PREEMPTED, Job.Outcome.MAINTENANCE)

Pod = ObservedPod | PodView


def review(view: View, gateway: Gateway) -> None:
    """Look at a running attempt: stopped by a person, by its limit, by its end, or by somebody on the cluster."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if has_ended(view):
        return settle(view, gateway)
    if is_deleted(view, gateway):
        return _deleted(view)
    if sets.failed(view):
        return other_failed(view, gateway)
    if cause := _cause_to_stop(view, gateway):
        return stop.begin(view, cause)
    return advance(view, due_s=_next_look_s(view))


def has_ended(view: View) -> bool:
    """Whether the controller says that the Job is over, or about to be; a bare pod speaks for itself."""
    return bool(_conditions(view) & {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})


def is_deleted(view: View, gateway: Gateway) -> bool:
    """Whether somebody deleted the object on the cluster, or is about to."""
    if view.object is not None:
        return view.object.is_deleting
    if pod := view.lone_pod:
        return pod.is_deleting or pod.gone_at is not None
    try:
        found = gateway.get(view.kind, view.attempt.namespace, view.attempt.object_name)
    except NotFound:
        return True
    return bool(found["metadata"]["uid"] != view.attempt.object_uid)


def lost_node(view: View) -> Cause | None:
    """A node that failed under the gang, or is taken out of use: its peers wait for it, and need not.

    What the cluster gives up itself counts too, though so many nodes are silent that ours are not believed to be lost.
    """
    if place := view.fallen:
        return stop.fallen(place)
    if row := view.in_maintenance:
        return stop.maintenance(row)
    for pod in view.present:
        row = view.allocation_of(pod.rank)
        if row and pod.disruption and pod.phase not in TERMINAL and not row.node.is_ready:
            return _again(view, verdict.of_pod(pod), row)
    return None


def settle(view: View, gateway: Gateway) -> None:
    """S8: once every pod has ended, give back the GPUs and say how it ended."""
    conditions = _conditions(view)
    sets.end_others(view, gateway)
    pods = _pods_now(view, gateway)
    if pods is None:
        return advance(view, due_s=1)
    if conditions & {"Failed", "FailureTarget"}:
        return _settle_failure(view, pods, is_over="Failed" in conditions)
    if "Complete" not in conditions or not _all_ended(pods):
        return advance(view, due_s=1)
    return _succeed(view)


def commit_of(view: View) -> str:
    """The commit that the checkout resolved, from the termination message of its container."""
    return next((pod.init_message.strip()[:64] for pod in view.pods if pod.init_message), "")


def _cause_to_stop(view: View, gateway: Gateway) -> Cause | None:
    if overdue := _overdue_s(view):
        return Cause(code=Job.Outcome.TIMEOUT, message=f"ran for its limit of {overdue} s")
    if cause := lost_node(view):
        return cause
    if any(pod.is_gated for pod in view.present):
        # A replacement for a pod that somebody deleted: its peers have state that it has not.
        return stop.again("a pod was deleted on the cluster")
    if lost := sets.lost(view, gateway):
        return stop.again(f"{lost} was deleted on the cluster")
    return None


def other_failed(view: View, gateway: Gateway) -> None:
    """A further set has failed: the workers go with it, and all start again or none."""
    pods = [pod for pod in _pods_now(view, gateway) or () if (pod.rank or 0) >= view.attempt.workers]
    if place := suspected(view.held, view.faults, view.now, run=view.job.uid):
        return stop.begin(view, stop.fallen(place))
    judged = verdict.of_failed(pods)
    if judged.is_infrastructure or _has_retries(view):
        return stop.begin(view, _again(view, judged, None))
    return stop.begin(
        view, Cause(code=judged.code, message=judged.message, rank=judged.rank, exit_code=judged.exit_code)
    )


def _deleted(view: View) -> None:
    succeeded = {pod.rank for pod in view.pods if pod.phase == "Succeeded"}
    if len([rank for rank in succeeded if (rank or 0) < view.attempt.workers]) == view.attempt.workers:
        return _succeed(view)  # it was deleted after its end, by a person or by its time to live
    return stop.begin(view, stop.again("the object was deleted on the cluster"))


def _pods_now(view: View, gateway: Gateway) -> list[Pod] | None:
    """The pods as they are now, and as they last were those that are gone. None: their end was not seen yet."""
    read = partial(pod_view, domain=settings.MUSTER_DOMAIN, gpu_resources=())
    found, _version = gateway.read_list("pods", PODS, read, view.attempt.namespace, labels=render.selector(view))
    present = {pod.uid: pod for pod in found}
    missing = [pod for pod in view.pods if pod.uid not in present]
    if any(pod.gone_at is None for pod in missing):
        return None
    return [*missing, *present.values()]


def _all_ended(pods: Sequence[Pod]) -> bool:
    return all(pod.phase in TERMINAL or getattr(pod, "gone_at", None) for pod in pods)


def _settle_failure(view: View, pods: Sequence[Pod], *, is_over: bool) -> None:
    if overdue := _overdue_on_the_cluster(view):
        return stop.begin(view, Cause(code=Job.Outcome.TIMEOUT, message=overdue))
    if place := suspected(view.held, view.faults, view.now, run=view.job.uid):
        # Peers of a rank whose node went away fail too, and sooner than the cluster gives up the node.
        return stop.begin(view, stop.fallen(place))
    judged = verdict.of_failed(pods)
    if judged.is_infrastructure or (is_over and _has_retries(view)):
        # Not waiting for the end: pods on a lost node may never come to one.
        return stop.begin(view, _again(view, judged, None))
    if not is_over or not _all_ended(pods):
        return advance(view, due_s=1)
    return _fail(view, judged)


def _again(view: View, judged: Verdict, lost: Allocation | None) -> Cause:
    if judged.rank is None:
        return stop.again(judged.message)
    return Cause(
        code=judged.code,
        message=judged.message,
        rank=judged.rank,
        exit_code=judged.exit_code,
        requeues=True,
        **_culprit(view, judged, lost),
    )


def _culprit(view: View, judged: Verdict, lost: Allocation | None) -> dict[str, Any]:
    """The node that the run avoids from now on. Being preempted, or deleted by a person, is no fault of a node."""
    row = lost or view.allocation_of(judged.rank)
    if judged.code != Job.Outcome.NODE_LOST or row is None:
        return {}
    fault = of_node(row, view.faults)
    own = NodeFault.Kind.REFUSED if judged.is_refusal else NodeFault.Kind.EVICTED
    return {"node": row.node, "kind": fault.kind if fault else own, "fault": fault}


def _has_retries(view: View) -> bool:
    if view.size == 1:
        return False  # the Job on the cluster has made them
    used = view.job.attempts.filter(stop_requeues=True).exclude(stop_code__in=FREE_CODES).count()
    return used < (view.job.spec.get("backoff_limit") or 0)


def _succeed(view: View) -> None:
    with transaction.atomic():
        advance(view, due_s=0, step=Step.ENDED, ended_at=view.now)
        holding.release(view.held)
        transitions.move(
            view.job,
            frm=ENDING,
            to=State.SUCCEEDED,
            event=Event("succeeded"),
            # A short job may end before all its ranks were seen running.
            started_at=view.job.started_at or view.now,
            finished_at=view.now,
            exit_code=0,
            commit=commit_of(view),
        )
        enqueue("jobs.tasks.run_cycle")


def _fail(view: View, judged: Verdict) -> None:
    with transaction.atomic():
        advance(view, due_s=0, step=Step.ENDED, ended_at=view.now, stop_code=judged.code)
        holding.release(view.held)
        data = {"code": judged.code, "rank": judged.rank, "exit_code": judged.exit_code, "message": judged.message}
        transitions.move(
            view.job,
            frm=ENDING,
            to=State.FAILED,
            event=Event("failed", data),
            outcome_code=judged.code,
            outcome_rank=judged.rank,
            outcome_message=judged.message[:500],
            exit_code=judged.exit_code,
            finished_at=view.now,
        )
        enqueue("jobs.tasks.run_cycle")


def _conditions(view: View) -> set[str]:
    if pod := view.lone_pod:
        return {"Succeeded": {"Complete"}, "Failed": {"Failed"}}.get(pod.phase, set())
    if view.object is None:
        return set()
    conditions = view.object.status.get("conditions") or []
    return {condition["type"] for condition in conditions if condition.get("status") == "True"}


def _overdue_on_the_cluster(view: View) -> str:
    """What the controller says of a Job that it ended for its deadline, should the portal have been away."""
    conditions = view.object.status.get("conditions") or [] if view.object else []
    found = (each for each in conditions if each.get("reason") == "DeadlineExceeded" and each.get("status") == "True")
    return next((str(each.get("message") or "DeadlineExceeded") for each in found), "")


def _overdue_s(view: View) -> int | None:
    limit = view.job.spec.get("max_runtime_s")
    if not limit or view.attempt.started_at is None:
        return None
    ran = (view.now - view.attempt.started_at).total_seconds()
    return int(limit) if ran >= limit else None


def _next_look_s(view: View) -> float:
    limit = view.job.spec.get("max_runtime_s")
    if not limit or view.attempt.started_at is None:
        return REVIEW_S
    left = limit - (view.now - view.attempt.started_at).total_seconds()
    return float(min(REVIEW_S, max(0.5, left)))
