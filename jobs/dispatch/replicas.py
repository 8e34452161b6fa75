"""Services: each replica stands at its gate until the engine gives it a place, then it is pinned there."""

import contextlib

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Conflict, Invalid, NotFound
from clusters.manifests import patches
from clusters.models import ObservedPod
from jobs import transitions
from jobs.dispatch import limits, run, start, stop
from jobs.dispatch.faults import fallen, is_emptied
from jobs.dispatch.progress import advance
from jobs.dispatch.stop import Cause
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding, incidents, span
from jobs.transitions import Event
from portal.core.enqueue import enqueue

REVIEW_S = 15.0
# How long a node's maintenance waits for the other replicas of a service to be up.
PATIENCE_S = 120.0


def review(view: View, gateway: Gateway) -> None:
    """Bring the replicas in line with what is wanted and what was granted: one pass."""
    if cause := _cause_to_stop(view, gateway):
        return stop.begin(view, cause)
    if view.job.workers != view.attempt.workers:
        return _scale(view, gateway)
    _give_back(view)
    _evacuate(view, gateway)
    _move_out(view, gateway)
    _unseat(view, gateway)
    if not _seat(view, gateway):
        return advance(view, due_s=0.5)
    is_up = view.job.workers == 0 or any(pod.is_ready for pod in view.present)
    if is_up and view.attempt.step != Attempt.Step.RUNNING:
        return start.begin_running(view)
    return advance(view, due_s=2.0 if view.attempt.step != Attempt.Step.RUNNING else REVIEW_S)


def _cause_to_stop(view: View, gateway: Gateway) -> Cause | None:
    if stop.is_wanted(view):
        return stop.CANCELLED
    if run.is_deleted(view, gateway):
        return stop.again("the object was deleted on the cluster")
    if view.attempt.step == Attempt.Step.RUNNING or view.step_age_s < limits.PULL_GRACE_S:
        return None
    pulling = start.failed_pull(view.present)
    return Cause(code=Job.Outcome.IMAGE_PULL, message=pulling.message) if pulling else None


def _scale(view: View, gateway: Gateway) -> None:
    ops = patches.scale(view.attempt.object_uid, view.job.workers)
    try:
        gateway.patch_json(view.kind, view.attempt.namespace, view.attempt.object_name, ops)
    except (NotFound, Invalid):
        return stop.begin(view, stop.again("the object was changed on the cluster"))
    return advance(view, due_s=0.5, workers=view.job.workers)


def _give_back(view: View) -> None:
    """Free the places of replicas that are proven over, and places that nobody will take."""
    alive = {pod.uid for pod in view.present if pod.phase not in TERMINAL}
    known = {pod.uid for pod in view.pods}
    over = [row for row in view.held if row.pod_uid in known and row.pod_uid not in alive]
    kept = [row for row in view.held if row not in over]
    # A place without a pod was never bound: nothing to prove.
    over += [row for row in kept if not row.pod_uid and _is_of_no_use(row, view)]
    kept = [row for row in kept if row not in over]
    surplus = max(0, len(kept) - view.job.workers)
    over += [row for row in reversed(kept) if not row.pod_uid][:surplus]
    if holding.release(over):
        span.update(view.attempt)
        transitions.announce(view.job)
        enqueue("jobs.tasks.run_cycle")


def _seat(view: View, gateway: Gateway) -> bool:
    """Give each gated replica a free place. False: something moved meanwhile, look again soon."""
    taken = {row.pod_uid: row for row in view.held if row.pod_uid}
    free = [row for row in view.held if not row.pod_uid]
    calm = True
    for pod in view.present:
        if not pod.is_gated or pod.is_deleting:
            continue
        row = taken.get(pod.uid) or (free.pop(0) if free else None)
        if row is None:
            continue
        calm &= _seat_one(gateway, pod, row)
    return calm


def _unseat(view: View, gateway: Gateway) -> None:
    """Delete replicas that the scheduler has kept off their node for too long; they come anew, at the gate."""
    rows = {row.pod_uid: row for row in view.held if row.pod_uid}
    for pod in view.present:
        row = rows.get(pod.uid)
        # What is observed of such a pod does not change any more, so its age tells how long it has waited.
        waited_s = (view.now - pod.seen_at).total_seconds()
        if row is None or pod.is_gated or pod.is_scheduled or pod.is_deleting or waited_s < limits.BIND_S:
            continue
        _avoid(view, row, pod.message or "not bound")
        with contextlib.suppress(NotFound, Conflict):
            gateway.delete("pods", pod.namespace, pod.name, uid=pod.uid)


def _is_of_no_use(row: Allocation, view: View) -> bool:
    return fallen([row], view.faults, view.now, run=view.job.uid) is not None or row.node.maintenance_at is not None


def _move_out(view: View, gateway: Gateway) -> None:
    """Delete the replicas on nodes that are emptied, one by one while the others serve, and soon in any case."""
    rows = {row.pod_uid: row for row in view.held if row.pod_uid and is_emptied(row, view.now)}
    leaving = [pod for pod in view.present if pod.uid in rows and not pod.is_deleting and pod.phase not in TERMINAL]
    if not leaving:
        return
    overdue_s = max((view.now - (rows[pod.uid].node.maintenance_at or view.now)).total_seconds() for pod in leaving)
    serving = sum(pod.is_ready and not pod.is_deleting for pod in view.present)
    if overdue_s < PATIENCE_S and serving < view.job.workers:
        return
    for pod in leaving if overdue_s >= PATIENCE_S else leaving[:1]:
        with contextlib.suppress(NotFound, Conflict):
            gateway.delete("pods", pod.namespace, pod.name, uid=pod.uid)


def _evacuate(view: View, gateway: Gateway) -> None:
    """Delete the replicas whose node failed; each comes anew at the gate, and its place is free after its proof."""
    rows = {row.pod_uid: row for row in view.held if row.pod_uid}
    for pod in view.present:
        row = rows.get(pod.uid)
        place = fallen([row], view.faults, view.now, run=view.job.uid) if row else None
        if row is None or place is None or pod.is_deleting or pod.phase in TERMINAL:
            continue
        with transaction.atomic():
            incidents.open_incident(
                attempt=view.attempt,
                node=row.node,
                kind=place.kind,
                message=place.message,
                fault=place.fault,
                gpus=row.gpus,
                checkpoint_at=None,
                now=view.now,
                pod_uid=pod.uid,
            )
            _avoid(view, row, place.message)
        with contextlib.suppress(NotFound, Conflict):
            gateway.delete("pods", pod.namespace, pod.name, uid=pod.uid)


def _avoid(view: View, row: Allocation, why: str) -> None:
    """Let no replica of the service come to this node for a while."""
    job = view.job
    job.exclusions = incidents.exclusions_with(
        job, row.node_id, name=row.node.name, why=why, failed_at=view.now, now=view.now
    )
    Job.objects.filter(pk=job.pk).update(exclusions=job.exclusions)


def _seat_one(gateway: Gateway, pod: ObservedPod, row: Allocation) -> bool:
    """Book the place for this very pod, then open its gate; a crash between the two is healed by the next pass."""
    booked = Allocation.objects.filter(pk=row.pk, released_at=None, pod_uid__in=("", pod.uid)).update(pod_uid=pod.uid)
    if not booked:
        return False
    try:
        body = gateway.get("pods", pod.namespace, pod.name)
    except NotFound:
        body = {"metadata": {"uid": ""}}
    if body["metadata"]["uid"] == pod.uid and start.release_pod(gateway, body, row.node.name, settings.MUSTER_DOMAIN):
        return True
    # It never was bound, so the place is free for another replica.
    Allocation.objects.filter(pk=row.pk, released_at=None, pod_uid=pod.uid).update(pod_uid="")
    return False


def open_service(view: View, _gateway: Gateway) -> None:
    """The objects stand: the replicas come up from now on."""
    with transaction.atomic():
        advance(view, step=Attempt.Step.STARTING, due_s=0)
        transitions.move(view.job, frm=Job.State.ADMITTED, to=Job.State.STARTING, event=Event("starting"))
