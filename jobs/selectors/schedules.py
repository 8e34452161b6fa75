"""When a schedule comes due next, and the runs that it made."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from clusters.models import ObservedObject
from jobs.jobspec import cron
from jobs.models import Job
from jobs.selectors.placement import AttemptPlace
from portal.core import clock

SHOWN_TIMES = 3
SHOWN_RUNS = 10


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """A run of a schedule, and when it was due in the schedule's time zone; empty: a person made its Job."""

    job: Job
    due: str


@dataclass(frozen=True, slots=True)
class SchedulePanel:
    """What the page of a schedule shows of it. `times` are in its own time zone; a paused one has none."""

    cron: str
    zone: str
    times: list[str]
    concurrency: str
    deadline_s: int | None
    warning: str
    runs: list[ScheduleRun]


def panel_of(job: Job, place: AttemptPlace | None) -> SchedulePanel | None:
    """Return the panel of a schedule, in two queries; None for any other job."""
    schedule = job.spec.get("schedule")
    if not job.is_schedule or not schedule:
        return None
    runs = Job.objects.filter(parent=job).exclude(adopts="").order_by("-pk")[:SHOWN_RUNS]
    return SchedulePanel(
        cron=schedule["cron"],
        zone=schedule["time_zone"],
        times=[] if job.is_final or job.is_paused else times_of(schedule),
        concurrency=_concurrency(schedule["concurrency"]),
        deadline_s=schedule.get("starting_deadline_s"),
        warning=_warning(place),
        runs=[ScheduleRun(run, _due(run, schedule["time_zone"])) for run in runs],
    )


def times_of(schedule: dict[str, str], count: int = SHOWN_TIMES) -> list[str]:
    """Return the next times as people read them, in the schedule's own time zone."""
    return list(_texts(_next(schedule, count), schedule["time_zone"]))


def due_times_of(job: Job) -> list[str] | None:
    """Return the next times as REST shows them; None for what is no schedule."""
    schedule = job.spec.get("schedule")
    if not job.is_schedule or not schedule:
        return None
    return [] if job.is_final or job.is_paused else [moment.isoformat() for moment in _next(schedule, SHOWN_TIMES)]


def _next(schedule: dict[str, str], count: int) -> list[datetime]:
    return cron.next_times(cron.parse(schedule["cron"]), schedule["time_zone"], clock.now(), count)


def _texts(moments: Iterable[datetime], zone: str) -> Iterable[str]:
    return (date_format(moment.astimezone(ZoneInfo(zone)), "D j M Y, H:i") for moment in moments)


def _concurrency(value: str) -> str:
    return {
        "forbid": _("the next run waits until the one before is over"),
        "allow": _("runs may overlap"),
        "replace": _("a new run stops the one before"),
    }.get(value, value)


def _warning(place: AttemptPlace | None) -> str:
    if place is None:
        return ""
    uid = place.attempt.object_uid
    rows = ObservedObject.objects.filter(cluster_id=place.attempt.cluster_id, uid=uid).values_list("warning", flat=True)
    return rows.first() or "" if uid else ""


def _due(run: Job, zone: str) -> str:
    text = run.adopted.get("due_at")
    return next(iter(_texts([datetime.fromisoformat(text)], zone)), "") if text else ""
