"""Write down what a node's fault did to a run, and keep the run away from that node for a while."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from clusters.models import Node, NodeFault
from jobs.models import Attempt, Incident, Job

# More than that many nodes to avoid would only make a run wait.
MOST_EXCLUSIONS = 50


def open_incident(  # noqa: PLR0913 -- one row, written out
    *,
    attempt: Attempt,
    node: Node,
    kind: str,
    message: str,
    fault: NodeFault | None,
    gpus: int,
    checkpoint_at: datetime | None,
    now: datetime,
    pod_uid: str = "",
) -> Incident:
    """Write the incident of a gang (or of one replica) once, with what it lost: GPUs times what it had computed."""
    since = max(filter(None, (attempt.started_at, checkpoint_at)), default=None) if attempt.started_at else None
    lost_s = max(0.0, (now - since).total_seconds()) if since else 0.0
    return Incident.objects.get_or_create(
        attempt=attempt,
        pod_uid=pod_uid,
        defaults={
            "node": node,
            "fault": fault,
            "kind": kind,
            "message": message[:500],
            "detected_at": fault.detected_at if fault else now,
            "opened_at": now,
            "gpus": gpus,
            "lost_since": since,
            "is_from_checkpoint": bool(since and since == checkpoint_at),
            "lost_gpu_s": round(gpus * lost_s),
            "lost_cents": _cents(attempt, pod_uid, lost_s),
        },
    )[0]


def _cents(attempt: Attempt, pod_uid: str, lost_s: float) -> int | None:
    """Return what the places of a gang, or of a replica, cost in that time; None if one has no price."""
    places = attempt.allocations.filter(pod_uid=pod_uid) if pod_uid else attempt.allocations
    prices = list(places.values_list("gpus", "flavor__price_cents"))
    if not prices or not all(price for _gpus, price in prices):
        return None
    return round(sum(gpus * price for gpus, price in prices) * lost_s / 3600)


def exclusions_with(
    job: Job, node_id: int, *, name: str, why: str, failed_at: datetime, now: datetime
) -> list[dict[str, Any]]:
    """Return the nodes that the job avoids, this one among them from now on; those whose time is over are dropped."""
    kept = [each for each in job.exclusions_at(now) if each["node"] != node_id]
    until = now + timedelta(seconds=settings.MUSTER_EXCLUDE_S)
    entry = {"node": node_id, "name": name, "why": why, "at": failed_at.isoformat(), "until": until.isoformat()}
    return [*kept, entry][-MOST_EXCLUSIONS:]
