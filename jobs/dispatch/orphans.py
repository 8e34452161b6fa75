"""Objects on the clusters that carry our installation's labels and that no live attempt answers for.

A create whose answer was lost may land after its attempt has ended; somebody may delete a Job without its pods; a
database may have been restored from yesterday. What is found may be what another worker is about to write down, so
it goes after a grace only, and only when the cluster itself still says that it is ours.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from clusters.k8s.gateway import Gateway, gateway_for
from clusters.k8s.values import Conflict, GatewayError, JsonObject, NotFound
from clusters.manifests import names
from clusters.models import Cluster, ObservedObject, ObservedPod
from clusters.selectors.capacity import heard_clusters
from clusters.watch.diagnose import moment
from jobs.dispatch.view import TERMINAL
from jobs.models import Attempt, Job
from portal.core import clock

log = structlog.get_logger(__name__)

GRACE = timedelta(minutes=10)
# One run deletes at most so many on each cluster, so that it stays short; the next one goes on.
AT_ONCE = 50
KINDS: Mapping[str, str] = {
    "Job": "jobs",
    "CronJob": "cronjobs",
    "StatefulSet": "statefulsets",
    "Deployment": "deployments",
}
Found = TypeVar("Found", ObservedObject, ObservedPod)


def sweep() -> int:
    """Delete what is orphaned on every cluster that can be heard; return how many deletions were asked for."""
    now = clock.now()
    return sum(_sweep_cluster(cluster, now) for cluster in heard_clusters(now))


def _sweep_cluster(cluster: Cluster, now: datetime) -> int:
    deleted = 0
    for kind, row in _orphans(cluster, now):
        try:
            deleted += _delete(gateway_for(cluster), kind, row, now)
        except GatewayError as error:
            log.warning("orphan_not_deleted", cluster=cluster.name, name=row.name, error=str(error))
            break
    return deleted


def _orphans(cluster: Cluster, now: datetime) -> Iterator[tuple[str, ObservedObject | ObservedPod]]:
    # A Job that a schedule made belongs to its run from the moment that this is queued.
    waits = Job.objects.filter(adopts=OuterRef("uid")).exclude(state__in=Job.FINAL)
    objects = _unanswered(ObservedObject.objects.filter(~Exists(waits), cluster=cluster), now)[:AT_ONCE]
    for row in objects:
        # A finished Job holds nothing, and its pods have the logs: its own time to live removes it.
        if not _is_finished(row):
            yield KINDS[row.kind], row
    owner = ObservedObject.objects.filter(
        cluster=OuterRef("cluster"), run=OuterRef("run"), attempt=OuterRef("attempt"), gone_at=None
    )
    pods = ObservedPod.objects.filter(~Exists(owner), cluster=cluster).exclude(phase__in=TERMINAL)
    for pod in _unanswered(pods, now)[:AT_ONCE]:
        yield "pods", pod


def _unanswered(rows: QuerySet[Found], now: datetime) -> QuerySet[Found]:
    """Keep what has been there unchanged for a while and belongs to no attempt that lives or has only just ended."""
    answering = Attempt.objects.filter(
        ~Q(step=Attempt.Step.ENDED) | Q(ended_at__gt=now - GRACE),
        cluster=OuterRef("cluster"),
        job__uid=OuterRef("run"),
        number=OuterRef("attempt"),
    )
    quiet = rows.filter(gone_at=None, is_deleting=False, seen_at__lte=now - GRACE)
    return quiet.filter(~Exists(answering)).order_by("pk")


def _is_finished(row: ObservedObject) -> bool:
    conditions = row.status.get("conditions") or []
    return any(each.get("status") == "True" and each.get("type") in ("Complete", "Failed") for each in conditions)


def _delete(gateway: Gateway, kind: str, row: ObservedObject | ObservedPod, now: datetime) -> bool:
    try:
        body = gateway.get(kind, row.namespace, row.name)
        if body["metadata"]["uid"] != row.uid or not _is_ours(body) or not _is_old(body, now):
            return False
        # What a schedule made is looked at by itself.
        propagation = "Orphan" if kind == "cronjobs" else "Background"
        gateway.delete(kind, row.namespace, row.name, uid=row.uid, propagation=propagation)
    except (NotFound, Conflict):
        return False
    log.warning("orphan_deleted", kind=kind, namespace=row.namespace, name=row.name, run=row.run, attempt=row.attempt)
    return True


def _is_ours(body: JsonObject) -> bool:
    labels = body["metadata"].get("labels") or {}
    return bool(labels.get(names.label(settings.MUSTER_DOMAIN, "installation")) == settings.MUSTER_INSTALLATION)


def _is_old(body: JsonObject, now: datetime) -> bool:
    made_at = moment(body["metadata"].get("creationTimestamp"))
    return made_at is not None and made_at <= now - GRACE
