"""The one driver: claims the attempts that are due, compares wanted rows with observed rows, takes one step each.

It never waits for a cluster. What a step leaves to wait for comes back as an observation, which makes the attempt due
again; a lost hint costs one look (`due_at`), a lost worker one claim.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet

from clusters.k8s.gateway import Gateway, gateway_for
from clusters.k8s.values import GatewayError, Unreachable
from clusters.models import Cluster, Node, NodeFault
from clusters.selectors.capacity import stale_cluster_ids
from jobs.dispatch import lanes, limits, replicas, run, schedules, start, stateful, stop
from jobs.dispatch.progress import FencedOffError, advance, gathered_looks
from jobs.dispatch.view import View, load_views
from jobs.models import Allocation, Attempt
from portal.core import clock
from portal.core.enqueue import enqueue

log = structlog.get_logger(__name__)

Step = Attempt.Step
StepFunction = Callable[[View, Gateway], None]

# One pass takes so many attempts that start or stop, and looks at so many that run.
BATCH = 50
LOOKS = 500
# Longer than a pass, so that a claim is taken from a dead worker only; if not, the fence stops the slow one.
CLAIM = timedelta(seconds=limits.PASS_S + 5)
# An observation is stamped before its transaction commits: one that is this much older than a look may be unseen.
COMMIT_LAG = timedelta(seconds=1)
# How far the clocks of two workers may be apart.
CLOCK_SKEW = timedelta(seconds=5)
RETRY_S = 2.0
# Longer than the longest time between two looks at an attempt: what was observed before that is seen by its time.
NEWS = timedelta(seconds=60)
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
SCHEDULE_STEPS: Mapping[str, StepFunction] = {
    Step.PLANNED: start.create,
    Step.CREATED: schedules.attach,
    Step.ATTACHED: schedules.begin,
    Step.RUNNING: schedules.review,
    Step.STOPPING: schedules.pursue,
}
STEPS_OF_WORKLOAD: dict[str, Mapping[str, StepFunction]] = {
    "job": GANG_STEPS,
    "cronjob": SCHEDULE_STEPS,
    "pod": GATED_STEPS,
    "statefulset": STATEFUL_STEPS,
    "deployment": SERVICE_STEPS,
}

_NEWS = """
SELECT attempt.id
FROM (
    SELECT run, attempt, max(seen_at) AS seen_at
    FROM (
        SELECT run, attempt, seen_at FROM clusters_observedpod WHERE seen_at > %(since)s
        UNION ALL
        SELECT run, attempt, seen_at FROM clusters_observedobject WHERE seen_at > %(since)s
    ) AS observed
    GROUP BY run, attempt
) AS news
JOIN jobs_job AS job ON job.uid = news.run
JOIN jobs_attempt AS attempt ON attempt.job_id = job.id AND attempt.number = news.attempt
WHERE attempt.step <> 'ended' AND news.seen_at > attempt.looked_at - make_interval(secs => %(lag_s)s)
"""


def reconcile_due() -> int:
    """Advance a batch of due attempts; ask for another pass when some are due at once.

    Each cluster is served in a lane of its own, so that one that hangs holds up nothing but itself.
    """
    attempts = _claim(lanes.busy())
    if len(attempts) >= BATCH:
        _ask_again()  # another worker takes the rest meanwhile
    views = load_views(attempts)
    if _has_one_cluster():
        _serve(views)
        return len(attempts)
    by_cluster: dict[int, list[View]] = defaultdict(list)
    for view in views:
        by_cluster[view.cluster.pk].append(view)
    lanes.serve(by_cluster, _serve)
    _ask_again()
    return len(attempts)


def _serve(views: Sequence[View]) -> None:
    _advance_all(views)
    _ask_again()


def _ask_again() -> None:
    if _workable().exclude(cluster_id__in=lanes.busy()).filter(due_at__lte=clock.now()).exists():
        enqueue("jobs.tasks.reconcile")


def _has_one_cluster() -> bool:
    return Cluster.objects.filter(is_enabled=True)[:2].count() < 2


def _claim(busy: Collection[int] = ()) -> list[Attempt]:
    """Claim attempts on their way first, then those that run: a look at one of these mostly changes nothing."""
    now = clock.now()
    with transaction.atomic():
        due = _is_due().exclude(cluster_id__in=busy).order_by("due_at", "pk")
        due = due.select_for_update(skip_locked=True, no_key=True, of=("self",))
        parts = (due.exclude(step=Step.RUNNING)[:BATCH], due.filter(step=Step.RUNNING)[:LOOKS])
        keys = [key for part in parts for key in part.values_list("pk", flat=True)]
        Attempt.objects.filter(pk__in=keys).update(claimed_until=now + CLAIM, fence=F("fence") + 1)
    claimed = Attempt.objects.filter(pk__in=keys).select_related("job__team", "job__queue", "cluster")
    return sorted(claimed, key=lambda attempt: (attempt.step == Step.RUNNING, attempt.due_at, attempt.pk))


def _is_due() -> QuerySet[Attempt]:
    now = clock.now()
    return _workable().filter(
        Q(due_at__lte=now) | _was_set_back(now) | Q(pk__in=[*_told_of(now), *_hit_by_faults(now)])
    )


def _told_of(now: datetime) -> list[int]:
    """Attempts of which something was observed since the last look. An older look is due by its time."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWS, {"since": now - NEWS, "lag_s": COMMIT_LAG.total_seconds()})
        return [key for (key,) in cursor.fetchall()]


def _was_set_back(now: datetime) -> Q:
    """Whether an attempt was looked at, or made, after now: all that it waits for is late by as much."""
    ahead = now + CLOCK_SKEW
    return Q(looked_at__gt=ahead) | Q(looked_at=None, step_at__gt=ahead)


def _hit_by_faults(now: datetime) -> list[int]:
    """Attempts on nodes that failed, or whose maintenance began, after the last look. The next look sees older news."""
    recent = NodeFault.objects.filter(acts_at__gt=now - FAULT_NEWS, acts_at__lte=now)
    emptied = Node.objects.filter(maintenance_at__gt=now - FAULT_NEWS, maintenance_at__lte=now)
    moments = (*recent.values_list("node_id", "acts_at"), *emptied.values_list("pk", "maintenance_at"))
    acting = [(node_id, at) for node_id, at in moments if at is not None]
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
        Attempt.objects.filter(
            # Nobody claims for longer: a claim beyond is one from before the clock was set back.
            Q(claimed_until=None) | Q(claimed_until__lte=now) | Q(claimed_until__gt=now + CLAIM + CLOCK_SKEW)
        )
        .exclude(step=Step.ENDED)
        # While a cluster is stale nothing is released and nothing is started on it.
        .exclude(cluster_id__in=stale_cluster_ids(now))
    )


def _advance_all(views: Sequence[View]) -> None:
    deadline = time.monotonic() + limits.PASS_S
    unreachable: set[int] = set()
    with gathered_looks() as looks:
        for position, view in enumerate(views):
            if time.monotonic() > deadline:
                _give_back(views[position:])
                break
            _advance(view, unreachable)
            if len(looks.waiting) >= BATCH:
                looks.write()


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
