"""What a person's home shows of jobs and quota."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from clusters.selectors.utilisation import utilisation_of_runs
from jobs.models import Attempt, Job
from jobs.selectors.rows import shape_of
from jobs.selectors.standing import how_ended, schedule_line, why_waiting
from portal.core import clock
from portal.identity.models import Team, User
from quotas.models import Quota, QuotaUsage

MOST = 50
SHOWN = 8
LATELY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HomeRow:
    """One job of the person. Workers hold and run together, as its state says."""

    job: Job
    line: str
    shape: str
    held: int
    running: int
    utilisation: int | None


@dataclass(frozen=True, slots=True)
class MyJobs:
    """`needs` failed within a day or are stopping; `live` are under way or wait, the newest first."""

    needs: list[HomeRow]
    live: list[HomeRow]
    running: int
    queued: int


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """Use of one flavor in one queue of the team."""

    queue: str
    flavor: str
    used: int
    nominal: int


def my_jobs(user: User) -> MyJobs:
    """Read the person's jobs that matter now, in two queries."""
    failed = Q(state=Job.State.FAILED, finished_at__gte=clock.now() - LATELY)
    newest = Attempt.objects.filter(job=OuterRef("pk")).order_by("-number")
    jobs = list(
        Job.objects.filter(Q(state__in=[Job.State.QUEUED, *Job.HOLDING]) | failed, owner=user)
        .annotate(cluster_name=Subquery(newest.values("cluster__name")[:1]))
        .order_by("-created_at", "-id")[:MOST]
    )
    busy = utilisation_of_runs([job.uid for job in jobs if job.state == Job.State.RUNNING])
    rows = [_row(job, busy.get(job.uid)) for job in jobs]
    needs = [row for row in rows if row.job.state in (Job.State.FAILED, Job.State.STOPPING)]
    live = [row for row in rows if row not in needs]
    states = [job.state for job in jobs if not job.is_schedule]
    return MyJobs(
        needs=needs[:SHOWN],
        live=live[:SHOWN],
        running=states.count(Job.State.RUNNING),
        queued=states.count(Job.State.QUEUED),
    )


def quota_of(team: Team) -> list[QuotaRow]:
    """Read the team's quota and its use, by queue and flavor, in one query."""
    used = QuotaUsage.objects.filter(queue=OuterRef("queue"), flavor=OuterRef("flavor")).values("used")[:1]
    rows = (
        Quota.objects.filter(queue__team=team, nominal__gt=0)
        .annotate(used=Coalesce(Subquery(used), 0), queue_name=F("queue__name"), flavor_name=F("flavor__name"))
        .order_by("queue__name", "flavor__rank", "flavor__name")
    )
    return [QuotaRow(row.queue_name, row.flavor_name, row.used, row.nominal) for row in rows]


def _row(job: Job, busy: float | None) -> HomeRow:
    held = job.workers if job.state in Job.HOLDING else 0
    return HomeRow(
        job=job,
        line=_line(job),
        shape=shape_of(job, None),
        held=held,
        running=held if job.state in (Job.State.RUNNING, Job.State.STOPPING) else 0,
        utilisation=None if busy is None else round(busy),
    )


def _line(job: Job) -> str:
    if job.state == Job.State.QUEUED:
        return why_waiting(job)
    if job.state == Job.State.FAILED:
        return how_ended(job)
    where = str(getattr(job, "cluster_name", "") or "")
    return schedule_line(job, where) if job.is_schedule else where
