"""Services: each replica stands at its gate until the engine gives it a place, then it is pinned there."""

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Invalid, NotFound
from clusters.manifests import patches
from clusters.models import ObservedPod
from jobs import transitions
from jobs.dispatch import limits, start, stop
from jobs.dispatch.progress import advance
from jobs.dispatch.stop import Cause
from jobs.dispatch.view import TERMINAL, View
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding
from jobs.transitions import Event
from portal.core.enqueue import enqueue

REVIEW_S = 15.0


def review(view: View, gateway: Gateway) -> None:
    """Bring the replicas in line with what is wanted and what was granted: one pass."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if view.job.workers != view.attempt.workers:
        return _scale(view, gateway)
    _give_back(view)
    if not _seat(view, gateway):
        return advance(view, due_s=0.5)
    if any(pod.is_ready for pod in view.present) and view.attempt.step != Attempt.Step.RUNNING:
        return start.begin_running(view)
    if _never_started(view):
        pulling = start.failed_pull(view.present)
        return stop.begin(view, Cause(code=Job.Outcome.IMAGE_PULL, message=pulling.message if pulling else ""))
    return advance(view, due_s=2.0 if view.attempt.step != Attempt.Step.RUNNING else REVIEW_S)


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
    surplus = max(0, len(kept) - view.job.workers)
    # A place without a pod was never bound: nothing to prove.
    over += [row for row in reversed(kept) if not row.pod_uid][:surplus]
    if holding.release(over):
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


def _never_started(view: View) -> bool:
    return (
        view.attempt.step != Attempt.Step.RUNNING
        and view.step_age_s >= limits.PULL_GRACE_S
        and start.failed_pull(view.present) is not None
    )


def open_service(view: View, _gateway: Gateway) -> None:
    """The objects stand: the replicas come up from now on."""
    with transaction.atomic():
        advance(view, step=Attempt.Step.STARTING, due_s=0)
        transitions.move(view.job, frm=Job.State.ADMITTED, to=Job.State.STARTING, event=Event("starting"))
