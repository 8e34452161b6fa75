"""S7 and S8: watch a running gang and settle its end."""

from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import NotFound
from clusters.models import Node
from jobs import transitions
from jobs.dispatch import render, stop, verdict
from jobs.dispatch.progress import advance
from jobs.dispatch.stop import Cause
from jobs.dispatch.verdict import Verdict
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Attempt, Job
from jobs.services import holding
from jobs.transitions import Event
from portal.core.enqueue import enqueue

State = Job.State
Step = Attempt.Step

# The watcher wakes an attempt at once; this look is for a hint that was lost.
REVIEW_S = 15.0
ENDING = (State.STARTING, State.RUNNING)


def review(view: View, gateway: Gateway) -> None:
    """Look at a running attempt: stopped by a person, by its limit, by its end, or by somebody on the cluster."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if has_ended(view):
        return settle(view, gateway)
    if overdue := _overdue_s(view):
        message = f"ran for its limit of {overdue} s"
        return stop.begin(view, Cause(code=Job.Outcome.TIMEOUT, message=message))
    if view.object is None and _is_missing(view, gateway):
        return stop.begin(view, stop.again("the object was deleted on the cluster"))
    if any(pod.is_gated for pod in view.present):
        # A replacement for a pod that somebody deleted: its peers have state that it has not.
        return stop.begin(view, stop.again("a pod was deleted on the cluster"))
    return advance(view, due_s=_next_look_s(view))


def has_ended(view: View) -> bool:
    """Whether the controller says that the Job is over, or about to be."""
    return bool(_conditions(view) & {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})


def settle(view: View, gateway: Gateway) -> None:
    """S8: once every pod has ended, give back the GPUs and say how it ended."""
    conditions = _conditions(view)
    listed = gateway.list("pods", view.attempt.namespace, labels=render.selector(view))
    phases = [(pod.get("status") or {}).get("phase") for pod in listed.get("items") or ()]
    if not conditions & {"Complete", "Failed"} or any(phase not in TERMINAL for phase in phases):
        return advance(view, due_s=1)
    if "Complete" in conditions:
        return _succeed(view)
    judged = verdict.of_failed(view.pods, fallback=_failure_message(view))
    if judged.is_infrastructure:
        return stop.begin(
            view,
            Cause(
                code=judged.code, message=judged.message, rank=judged.rank, node=_node_of(view, judged), requeues=True
            ),
        )
    return _fail(view, judged)


def commit_of(view: View) -> str:
    """The commit that the checkout resolved, from the termination message of its container."""
    return next((pod.init_message.strip()[:64] for pod in view.pods if pod.init_message), "")


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
    if view.attempt.workers > 1 and view.attempt.number <= (view.job.spec.get("backoff_limit") or 0):
        return stop.begin(
            view,
            Cause(
                code=judged.code, message=judged.message, rank=judged.rank, exit_code=judged.exit_code, requeues=True
            ),
        )
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
            outcome_message=judged.message,
            exit_code=judged.exit_code,
            finished_at=view.now,
        )
        enqueue("jobs.tasks.run_cycle")
    return None


def _conditions(view: View) -> set[str]:
    if view.object is None:
        return set()
    conditions = view.object.status.get("conditions") or []
    return {condition["type"] for condition in conditions if condition.get("status") == "True"}


def _failure_message(view: View) -> str:
    conditions = (view.object.status.get("conditions") or []) if view.object else []
    return next((str(c.get("message", "")) for c in conditions if c["type"] in ("Failed", "FailureTarget")), "")


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


def _is_missing(view: View, gateway: Gateway) -> bool:
    try:
        gateway.get(view.kind, view.attempt.namespace, view.attempt.object_name)
    except NotFound:
        return True
    return False


def _node_of(view: View, judged: Verdict) -> Node | None:
    row = view.allocation_of(judged.rank)
    return row.node if row else None
