"""The one driver: claims the attempts that are due, compares wanted rows with observed rows, takes one step each.

It never waits for a cluster. What a step leaves to wait for comes back as an observation, which makes the attempt due
again; a lost hint costs one look (`due_at`), a lost worker one claim.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from clusters.k8s.gateway import Gateway, gateway_for
from clusters.k8s.values import GatewayError, Unreachable
from clusters.models import Node, NodeFault, ObservedObject, ObservedPod
from clusters.selectors.capacity import stale_cluster_ids
from jobs.dispatch import limits, replicas, run, start, stateful, stop
from jobs.dispatch.progress import FencedOffError, advance
from jobs.dispatch.view import View, load_views
from jobs.models import Allocation, Attempt
from portal.core import clock
from portal.core.enqueue import enqueue

log = structlog.get_logger(__name__)

Step = Attempt.Step
StepFunction = Callable[[View, Gateway], None]

BATCH = 50
# Longer than a pass, so that a claim is taken from a dead worker only; if not, the fence stops the slow one.
CLAIM = timedelta(seconds=limits.PASS_S + 5)
# An observation is stamped before its transaction commits: one that is this much older than a look may be unseen.
COMMIT_LAG = timedelta(seconds=1)
RETRY_S = 2.0
# Longer than the longest time between two looks at an attempt that runs.
FAULT_NEWS = timedelta(seconds=30)
# A step that fails by a fault of ours shall not keep the others from their turn.
FAULT_RETRY_S = 15.0

GANG_STEPS: Mapping[str, StepFunction] = {
    Step.PLANNED: start.create,
    Step.CREATED: start.attach,
    Step.ATTACHED: start.open_gate,
    Step.GATHERING: start.gather,
    Step.RELEASING: start.release,
    Step.STARTING: start.confirm,
    Step.RUNNING: run.review,
    Step.STOPPING: stop.pursue,
}
# Without a controller that could be held back, the pods stand at their gates from their creation on.
GATED_STEPS: Mapping[str, StepFunction] = {**GANG_STEPS, Step.ATTACHED: start.let_gather}
STATEFUL_STEPS: Mapping[str, StepFunction] = {**GATED_STEPS, Step.RUNNING: stateful.review}
SERVICE_STEPS: Mapping[str, StepFunction] = {
    Step.PLANNED: start.create,
    Step.CREATED: start.attach,
    Step.ATTACHED: replicas.open_service,
    Step.STARTING: replicas.review,
    Step.RUNNING: replicas.review,
    Step.STOPPING: stop.pursue,
}
STEPS_OF_WORKLOAD: dict[str, Mapping[str, StepFunction]] = {
    "job": GANG_STEPS,
    "pod": GATED_STEPS,
    "statefulset": STATEFUL_STEPS,
    "deployment": SERVICE_STEPS,
}


def reconcile_due() -> int:
    """Advance a batch of due attempts by one step each; ask for another pass when some are due at once."""
    attempts = _claim()
    _advance_all(load_views(attempts))
    if _workable().filter(due_at__lte=clock.now()).exists():
        enqueue("jobs.tasks.reconcile")
    return len(attempts)


def _claim() -> list[Attempt]:
    now = clock.now()
    with transaction.atomic():
        due = _is_due().select_for_update(skip_locked=True, no_key=True, of=("self",)).order_by("due_at", "pk")
        keys = list(due.values_list("pk", flat=True)[:BATCH])
        Attempt.objects.filter(pk__in=keys).update(claimed_until=now + CLAIM, fence=F("fence") + 1)
    claimed = Attempt.objects.filter(pk__in=keys).select_related("job__team", "job__queue", "cluster")
    return list(claimed.order_by("due_at", "pk"))


def _is_due() -> QuerySet[Attempt]:
    now = clock.now()
    return _workable().filter(
        Q(due_at__lte=now) | _news(ObservedPod) | _news(ObservedObject) | Q(pk__in=_hit_by_faults(now))
    )


def _hit_by_faults(now: datetime) -> list[int]:
    """Attempts on nodes that failed, or whose maintenance began, after the last look. The next look sees older news."""
    recent = NodeFault.objects.filter(acts_at__gt=now - FAULT_NEWS, acts_at__lte=now)
    emptied = Node.objects.filter(maintenance_at__gt=now - FAULT_NEWS, maintenance_at__lte=now)
    acting = list(recent.values_list("node_id", "acts_at"))
    acting += [(node_id, at) for node_id, at in emptied.values_list("pk", "maintenance_at") if at is not None]
    if not acting:
        return []
    rows = Allocation.objects.filter(node__in={node_id for node_id, _at in acting}, released_at=None)
    looked_at = {
        (node_id, attempt_id): looked
        for node_id, attempt_id, looked in rows.values_list("node_id", "attempt_id", "attempt__looked_at")
    }
    return [
        attempt_id
        for (node_id, attempt_id), looked in looked_at.items()
        if looked is not None and any(at > looked - COMMIT_LAG for other, at in acting if other == node_id)
    ]


def _workable() -> QuerySet[Attempt]:
    now = clock.now()
    return (
        Attempt.objects.filter(Q(claimed_until=None) | Q(claimed_until__lte=now))
        .exclude(step=Step.ENDED)
        # While a cluster is stale nothing is released and nothing is started on it.
        .exclude(cluster_id__in=stale_cluster_ids(now))
    )


def _news(model: type[ObservedPod] | type[ObservedObject]) -> Exists:
    """Whether something of the attempt was observed since the last look at it."""
    return Exists(
        model.objects.filter(
            run=OuterRef("job__uid"), attempt=OuterRef("number"), seen_at__gt=OuterRef("looked_at") - COMMIT_LAG
        )
    )


def _advance_all(views: Sequence[View]) -> None:
    deadline = time.monotonic() + limits.PASS_S
    unreachable: set[int] = set()
    for position, view in enumerate(views):
        if time.monotonic() > deadline:
            _give_back(views[position:])
            break
        _advance(view, unreachable)


def _give_back(views: Sequence[View]) -> None:
    for view in views:
        Attempt.objects.filter(pk=view.attempt.pk, fence=view.attempt.fence).update(claimed_until=None)


def _advance(view: View, unreachable: set[int]) -> None:
    steps = STEPS_OF_WORKLOAD[view.job.workload]
    try:
        if view.cluster.pk in unreachable:
            return advance(view, due_s=RETRY_S)
        return steps[view.attempt.step](view, gateway_for(view.cluster))
    except FencedOffError:
        log.warning("fenced_off", attempt=view.attempt.object_name)
    except Unreachable as error:
        # One hanging cluster costs one time-out a pass, not one an attempt.
        unreachable.add(view.cluster.pk)
        _try_later(view, error)
    except GatewayError as error:
        _try_later(view, error)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:  # the rows of one attempt shall not stop the driver for all
        log.exception("step_broke", attempt=view.attempt.object_name)
        _try_later(view, error, due_s=FAULT_RETRY_S)


def _try_later(view: View, error: Exception, *, due_s: float = RETRY_S) -> None:
    log.warning("step_failed", attempt=view.attempt.object_name, step=view.attempt.step, error=str(error))
    try:
        advance(view, due_s=due_s)
    except FencedOffError:
        log.warning("fenced_off", attempt=view.attempt.object_name)
