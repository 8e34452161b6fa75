"""S9: delete whole, give back GPUs only after proof, then say how it ended."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Conflict, JsonObject, NotFound
from clusters.manifests import names
from clusters.models import Node
from jobs import transitions
from jobs.dispatch import limits, render
from jobs.dispatch.progress import advance
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding
from jobs.transitions import Event
from portal.core.enqueue import enqueue

State = Job.State
BEFORE_STOP = (State.ADMITTED, State.STARTING, State.RUNNING)


def is_wanted(view: View) -> bool:
    """Whether a person asked for the stop."""
    return view.job.cancel_requested_at is not None


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an attempt is stopped. An empty code: the infrastructure's doing. `node`: the run avoids it from then on."""

    code: str = ""
    message: str = ""
    rank: int | None = None
    exit_code: int | None = None
    node: Node | None = None
    requeues: bool = False


CANCELLED = Cause(code=Job.Outcome.CANCELLED)


def again(message: str, node: Node | None = None) -> Cause:
    """The infrastructure failed the attempt: the job queues again."""
    return Cause(message=message, node=node, requeues=True)


def begin(view: View, cause: Cause) -> None:
    """Mark the attempt as to be stopped, with the reason that its end will show."""
    message = cause.message[:500]
    with transaction.atomic():
        advance(
            view,
            due_s=0,
            step=Attempt.Step.STOPPING,
            stop_code=cause.code,
            stop_message=message,
            stop_rank=cause.rank,
            stop_exit_code=cause.exit_code,
            stop_node_id=cause.node.pk if cause.node else None,
            stop_requeues=cause.requeues,
        )
        node = cause.node.name if cause.node else ""
        data = {"code": cause.code, "message": message, "rank": cause.rank, "node": node}
        transitions.move(view.job, frm=BEFORE_STOP, to=State.STOPPING, event=Event("stopping", data))


def pursue(view: View, gateway: Gateway) -> None:
    """Delete the object, look at what is left of it, give back what is proven free; end when nothing is left."""
    exists = _delete(view, gateway)
    listed = gateway.list("pods", view.attempt.namespace, labels=render.selector(view))
    left = [pod for pod in listed.get("items") or () if (pod.get("status") or {}).get("phase") not in TERMINAL]
    if not exists and not left:
        return finish(view)
    if not exists:
        _delete_orphans(left, gateway)
    # A pod holds GPUs from its binding until it is terminal or gone. On a lost node it may run on, unseen.
    bound = [pod for pod in left if pod["spec"].get("nodeName")]
    holding.release(row for row in view.held if not any(_is_of(pod, row) for pod in bound))
    return advance(view, due_s=1, deleted_at=view.attempt.deleted_at or view.now)


def finish(view: View) -> None:
    """End the attempt and move its job on: again into the queue, or to its end."""
    attempt = view.attempt
    with transaction.atomic():
        # From here the row of the attempt is locked, and a cancel waits: what it asked for before is seen below.
        advance(view, due_s=0, step=Attempt.Step.ENDED, ended_at=view.now)
        holding.release(view.held)
        view.job.refresh_from_db(fields=["cancel_requested_at", "cancelled_by", "excluded_node_ids"])
        if attempt.stop_requeues and not is_wanted(view) and attempt.number < limits.MAX_REQUEUES:
            _requeue(view)
        elif is_wanted(view):
            _end(view, State.CANCELLED, Job.Outcome.CANCELLED)
        else:
            _end(view, State.FAILED, attempt.stop_code or Job.Outcome.NODE_LOST)
        enqueue("jobs.tasks.run_cycle")


def _requeue(view: View) -> None:
    attempt = view.attempt
    excluded = [*view.job.excluded_node_ids]
    if attempt.stop_node_id and attempt.stop_node_id not in excluded:
        excluded.append(attempt.stop_node_id)
    data = {"code": attempt.stop_code, "message": attempt.stop_message, "attempt": attempt.number}
    transitions.move(
        view.job,
        frm=State.STOPPING,
        to=State.QUEUED,
        event=Event("requeued", data),
        excluded_node_ids=excluded,
        admitted_at=None,
        started_at=None,
    )


def _end(view: View, to: Job.State, code: str) -> None:
    attempt = view.attempt
    transitions.move(
        view.job,
        frm=State.STOPPING,
        to=to,
        event=Event(str(to), {"code": code, "message": attempt.stop_message}, view.job.cancelled_by),
        outcome_code=code,
        outcome_message=attempt.stop_message,
        outcome_rank=attempt.stop_rank,
        exit_code=attempt.stop_exit_code,
        finished_at=view.now,
    )


def _delete(view: View, gateway: Gateway) -> bool:
    """Ask for the deletion; return whether the object still exists."""
    place = (view.kind, view.attempt.namespace, view.attempt.object_name)
    try:
        # The reply of the create may have been lost, so the name decides, not what we remember.
        found = gateway.get(*place)
    except NotFound:
        return False
    if not _is_ours(found, view):
        return False
    if "deletionTimestamp" not in found["metadata"]:
        try:
            gateway.delete(*place, uid=found["metadata"]["uid"], propagation="Foreground")
        except (NotFound, Conflict):
            return False
    return True


def _is_ours(found: JsonObject, view: View) -> bool:
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    wanted = dict(pair.split("=", 1) for pair in render.selector(view).split(","))
    return all(labels.get(key) == value for key, value in wanted.items())


def _delete_orphans(pods: Sequence[JsonObject], gateway: Gateway) -> None:
    """Delete pods whose owner was deleted without them: no controller will."""
    for pod in pods:
        metadata = pod["metadata"]
        if "deletionTimestamp" not in metadata:
            with contextlib.suppress(NotFound, Conflict):
                gateway.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"])


def _is_of(pod: JsonObject, row: Allocation) -> bool:
    if row.pod_uid:
        return bool(pod["metadata"]["uid"] == row.pod_uid)
    rank = names.rank_of(pod, settings.MUSTER_DOMAIN)
    return bool(pod["spec"]["nodeName"] == row.node.name and rank in (None, row.rank))
