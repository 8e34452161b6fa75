"""Incidents for people: what hit which run, what it lost, and whether the run is under way again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils.translation import gettext as _

from jobs.models import Attempt, Incident
from jobs.selectors.export import MOST, instant, lines
from jobs.selectors.jobs import jobs_visible_to
from portal.core.keyset import keyset_page
from portal.identity.models import User

NEWEST_FIRST = ("-opened_at", "-id")
SUMMED = timedelta(days=30)
AT_ONCE = 500
_MINUTE_S = 60
COLUMNS = (
    *("at", "detected_at", "cluster", "node", "kind", "message", "team", "run", "attempt"),
    *("gpus", "lost_gpu_minutes", "from_checkpoint", "stopped_at", "running_again_at"),
    *("lost_cents", "currency"),
)


@dataclass(frozen=True, slots=True)
class Sums:
    """What all incidents of the last 30 days cost together."""

    incidents: int
    gpu_hours: float
    # None: none of them had a price.
    cents: int | None
    # Of those that lost something: how many had no price.
    unpriced: int


def incidents(user: User) -> QuerySet[Incident]:
    """All incidents, with the run at hand; of a run that the person may not see pages tell the team alone."""
    nxt = Attempt.objects.filter(job=OuterRef("attempt__job"), number__gt=OuterRef("attempt__number"))
    return Incident.objects.select_related("node__cluster", "attempt__job__team", "fault").annotate(
        is_visible=Exists(jobs_visible_to(user).filter(pk=OuterRef("attempt__job"))),
        again_at=Subquery(nxt.exclude(started_at=None).order_by("number").values("started_at")[:1]),
    )


def narrowed(rows: QuerySet[Incident], *, cluster: str = "", node: str = "") -> QuerySet[Incident]:
    """Return those of one cluster, or of one node of it."""
    if not f"{cluster}{node}".isprintable():
        return rows.none()
    rows = rows.filter(node__cluster__name=cluster) if cluster else rows
    return rows.filter(node__name=node) if node else rows


def sums(rows: QuerySet[Incident], now: datetime) -> Sums:
    """Add up the last 30 days."""
    found = (
        rows.filter(opened_at__gt=now - SUMMED)
        .order_by()
        .aggregate(
            n=Count("pk"),
            lost=Sum("lost_gpu_s"),
            cents=Sum("lost_cents"),
            unpriced=Count("pk", filter=Q(lost_cents=None, lost_gpu_s__gt=0)),
        )
    )
    return Sums(found["n"], (found["lost"] or 0) / 3600, found["cents"], found["unpriced"])


def standing_of(incident: Incident) -> str:
    """Return what became of the run."""
    attempt = incident.attempt
    if incident.pod_uid:
        return _("the replica moved to another node")
    if attempt.ended_at is None:
        return _("waits for proof that its pods are gone; a node that stays away must be deleted from its cluster")
    again_at: datetime | None = getattr(incident, "again_at", None)
    if again_at is not None:
        return _ran_again_after(max(0, round((again_at - incident.detected_at).total_seconds())))
    if attempt.job.is_final:
        return _("did not run again: %(state)s") % {"state": attempt.job.get_state_display()}
    return _("waits for its next place")


def _ran_again_after(seconds: int) -> str:
    if seconds < _MINUTE_S:
        return _("ran again after %(seconds)d s") % {"seconds": seconds}
    return _("ran again after %(minutes)d min") % {"minutes": round(seconds / _MINUTE_S)}


def document_of(incident: Incident) -> Mapping[str, Any]:
    """Return an incident as REST shows it. The run is None for those who may not see it."""
    attempt, fault = incident.attempt, incident.fault
    again_at: datetime | None = getattr(incident, "again_at", None)
    is_visible = bool(getattr(incident, "is_visible", False))
    return {
        "id": incident.pk,
        "cluster": incident.node.cluster.name,
        "node": incident.node.name,
        "kind": incident.kind,
        "message": incident.message,
        "team": attempt.job.team.slug,
        "run": attempt.job.uid if is_visible else None,
        "run_name": attempt.job.full_name if is_visible else None,
        "attempt": attempt.number,
        "gpus": incident.gpus,
        "lost_gpu_minutes": round(incident.lost_gpu_s / 60, 1),
        "lost_cents": incident.lost_cents,
        "currency": settings.MUSTER_CURRENCY,
        "lost_since": incident.lost_since,
        "from_checkpoint": incident.is_from_checkpoint,
        "detected_at": incident.detected_at,
        "opened_at": incident.opened_at,
        "fault_over_at": fault.cleared_at if fault else None,
        "stopped_at": attempt.ended_at,
        "running_again_at": again_at,
    }


def csv_pieces(rows: QuerySet[Incident]) -> Iterator[str]:
    """Yield the heading and then the incidents, newest first, a bounded number of rows a piece."""
    yield lines([COLUMNS])
    cursor, left = None, MOST
    while left > 0:
        page = keyset_page(rows, cursor=cursor, size=min(left, AT_ONCE), order=NEWEST_FIRST)
        yield lines(_cells(document_of(row)) for row in page.rows)
        cursor, left = page.next, left - len(page.rows)
        if cursor is None:
            return
    yield lines([[_("Only the newest %(most)d incidents.") % {"most": MOST}]])


def _cells(row: Mapping[str, Any]) -> Sequence[object]:
    return (
        *(instant(row["opened_at"]), instant(row["detected_at"]), row["cluster"], row["node"], row["kind"]),
        *(row["message"], row["team"], row["run_name"] or "", row["attempt"], row["gpus"], row["lost_gpu_minutes"]),
        *(str(row["from_checkpoint"]).lower(), instant(row["stopped_at"]), instant(row["running_again_at"])),
        *(("", "") if row["lost_cents"] is None else (row["lost_cents"], row["currency"])),
    )
