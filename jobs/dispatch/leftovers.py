"""Pods of quick runs that are over: no controller of the cluster removes them when their time to live has passed."""

from datetime import datetime, timedelta

import structlog

from clusters.k8s.gateway import gateway_for
from clusters.k8s.values import Conflict, GatewayError, NotFound
from clusters.models import Cluster, ObservedPod
from clusters.selectors.capacity import heard_clusters
from jobs.dispatch.view import TERMINAL
from jobs.models import Job
from portal.core import clock

log = structlog.get_logger(__name__)

# One run deletes at most so many on each cluster, so that it stays short; the next one goes on.
AT_ONCE = 50


def sweep() -> int:
    """Delete the pods whose time is over, on clusters that can be heard; return how many deletions were asked for."""
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
