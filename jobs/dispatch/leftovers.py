"""What no controller of the cluster removes: pods of quick runs, and services of schedules, that are over."""

from datetime import datetime, timedelta

import structlog
from django.db.models import Exists, OuterRef

from clusters.k8s.gateway import gateway_for
from clusters.k8s.values import Conflict, GatewayError, NotFound
from clusters.models import Cluster, ObservedPod
from clusters.selectors.capacity import heard_clusters
from jobs.dispatch.view import TERMINAL
from jobs.models import Attempt, Job
from portal.core import clock

log = structlog.get_logger(__name__)

# One run deletes at most so many on each cluster, so that it stays short; the next one goes on.
AT_ONCE = 50


def sweep() -> int:
    """Delete what is over, on clusters that can be heard; return how many deletions were asked for."""
    now = clock.now()
    return sum(_sweep_cluster(cluster, now) for cluster in heard_clusters(now))


def _sweep_cluster(cluster: Cluster, now: datetime) -> int:
    deleted = 0
    for pod in _overdue(cluster, now):
        try:
            gateway_for(cluster).delete("pods", pod.namespace, pod.name, uid=pod.uid, propagation="Background")
        except (NotFound, Conflict):
            continue
        except GatewayError as error:
            log.warning("leftover_not_deleted", cluster=cluster.name, name=pod.name, error=str(error))
            break
        deleted += 1
    return deleted + _sweep_services(cluster, now)


def _sweep_services(cluster: Cluster, now: datetime) -> int:
    """Delete the services of schedules that are over, with all their runs. `deleted_at` notes what is done."""
    runs = Job.objects.filter(parent=OuterRef("job")).exclude(adopts="").exclude(state__in=Job.FINAL)
    ended = Attempt.objects.filter(
        ~Exists(runs), cluster=cluster, job__workload="cronjob", step=Attempt.Step.ENDED, deleted_at=None
    )
    deleted = 0
    for attempt in ended.order_by("pk")[:AT_ONCE]:
        place = ("services", attempt.namespace, attempt.object_name)
        try:
            found = gateway_for(cluster).get(*place)
            gateway_for(cluster).delete(*place, uid=found["metadata"]["uid"], propagation="Background")
            deleted += 1
        except NotFound:
            pass  # only a schedule of gangs has one
        except GatewayError as error:
            log.warning("leftover_not_deleted", cluster=cluster.name, name=attempt.object_name, error=str(error))
            break
        Attempt.objects.filter(pk=attempt.pk).update(deleted_at=now)
    return deleted


def _overdue(cluster: Cluster, now: datetime) -> list[ObservedPod]:
    there = ObservedPod.objects.filter(cluster=cluster, gone_at=None, is_deleting=False, phase__in=TERMINAL)
    quick = Job.objects.filter(workload="pod", state__in=Job.FINAL, uid__in=there.values("run"))
    ends: dict[str, datetime] = {
        job.uid: job.finished_at + timedelta(seconds=ttl_s)
        for job in quick
        if job.finished_at is not None and (ttl_s := job.spec.get("ttl_s")) is not None
    }
    over = [run for run, end in ends.items() if end <= now]
    return list(there.filter(run__in=over).order_by("pk")[:AT_ONCE])
