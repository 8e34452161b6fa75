"""S9: delete whole, give back GPUs only after proof, then say how it ended."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Conflict, JsonObject, NotFound
from clusters.manifests import names
from clusters.models import Node, NodeFault
from clusters.services.faults import report_fault
from jobs import transitions
from jobs.dispatch import limits, render
from jobs.dispatch.faults import Fallen, load_faults
from jobs.dispatch.faults import fallen as find_fallen
from jobs.dispatch.progress import advance
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding, incidents
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
    # What was wrong with the node: a kind of NodeFault (empty: nothing was), and its row.
    kind: str = ""
    fault: NodeFault | None = None


CANCELLED = Cause(code=Job.Outcome.CANCELLED)


def again(message: str, node: Node | None = None) -> Cause:
    """The infrastructure failed the attempt: the job queues again."""
    return Cause(message=message, node=node, requeues=True)


def fallen(place: Fallen) -> Cause:
    """A node failed the attempt: the job queues again, and stays away from that node."""
    return Cause(
        code=Job.Outcome.NODE_LOST,
        message=place.message,
        rank=place.row.rank,
        node=place.row.node,
        requeues=True,
        kind=place.kind,
        fault=place.fault,
    )


def maintenance(row: Allocation) -> Cause:
    """An administrator takes the node out of use: the job queues again, and costs its owner no retry."""
    message = f"node {row.node.name} is taken out of use for its maintenance"
    return Cause(code=Job.Outcome.MAINTENANCE, message=message, rank=row.rank, requeues=True)


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
        if cause.node and cause.kind:
            _open_incident(view, cause, cause.node)


def _open_incident(view: View, cause: Cause, node: Node) -> None:
    fault = cause.fault
    if cause.kind == NodeFault.Kind.REFUSED:
        fault = report_fault(node=node, kind=cause.kind, detail={"message": cause.message[:300]})
    incidents.open_incident(
        attempt=view.attempt,
        node=node,
        kind=cause.kind,
        message=cause.message,
        fault=fault,
        gpus=view.attempt.workers * view.job.gpus_per_worker,  # a part may be given back already
        checkpoint_at=view.checkpoint_at,
        now=view.now,
    )


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
    attempt, late = view.attempt, _late_cause(view)
    with transaction.atomic():
        # From here the row of the attempt is locked, and a cancel waits: what it asked for before is seen below.
        advance(view, due_s=0, step=Attempt.Step.ENDED, ended_at=view.now)
        if late and late.node:
            attempt.stop_code, attempt.stop_message, attempt.stop_node_id = late.code, late.message, late.node.pk
            attempt.save(update_fields=["stop_code", "stop_message", "stop_node_id"])
            _open_incident(view, late, late.node)
        holding.release(view.held)
        view.job.refresh_from_db(fields=["cancel_requested_at", "cancelled_by", "exclusions"])
        if attempt.stop_requeues and not is_wanted(view) and attempt.number < limits.MAX_REQUEUES:
            _requeue(view)
        elif is_wanted(view):
            _end(view, State.CANCELLED, Job.Outcome.CANCELLED)
        else:
            _end(view, State.FAILED, attempt.stop_code or Job.Outcome.NODE_LOST)
        enqueue("jobs.tasks.run_cycle")


def _late_cause(view: View) -> Cause | None:
    """The node whose loss took the pods away. Its pods may be seen to go before it is."""
    attempt = view.attempt
    if attempt.stop_code or attempt.stop_node_id or not attempt.stop_requeues:
        return None
    if not any(pod.node_name for pod in view.pods):  # nothing of it ever was on a node
        return None
    places = list(attempt.allocations.select_related("node").order_by("rank"))
    faults = load_faults((row.node_id for row in places), view.now)
    place = find_fallen(places, faults, view.now, run=view.job.uid)
    return fallen(place) if place else None


def _requeue(view: View) -> None:
    attempt = view.attempt
    data = {"code": attempt.stop_code, "message": attempt.stop_message, "attempt": attempt.number}
    transitions.move(
        view.job,
        frm=State.STOPPING,
        to=State.QUEUED,
        event=Event("requeued", data),
        exclusions=_exclusions(view),
        admitted_at=None,
        started_at=None,
    )


def _exclusions(view: View) -> list[dict[str, Any]]:
    """The nodes that the run avoids from now on; the one at fault counts from the proof, not from the fault."""
    attempt = view.attempt
    node = Node.objects.filter(pk=attempt.stop_node_id).first() if attempt.stop_node_id else None
    if node is None:
        return list(view.job.exclusions)
    why = attempt.stop_message or str(Job.Outcome.NODE_LOST.label)
    return incidents.exclusions_with(
        view.job, node.pk, name=node.name, why=why, failed_at=attempt.step_at, now=view.now
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
    if not is_ours(found, view):
        return False
    if "deletionTimestamp" not in found["metadata"]:
        try:
            gateway.delete(*place, uid=found["metadata"]["uid"], propagation="Foreground")
        except (NotFound, Conflict):
            return False
    return True


def is_ours(found: JsonObject, view: View) -> bool:
    """Whether the object was made for this attempt, or for the run that it began."""
    if view.is_adopted:
        return bool(found["metadata"]["uid"] == view.job.adopts)
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
