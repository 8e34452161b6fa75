"""How a job stands, in a line for lists and in an answer for its page. Sentences only; no query is made here."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.explain.reasons import level_name
from jobs.explain.stored import sentence_of
from jobs.models import Job
from jobs.selectors.documents import rack_of, slowest_link_of
from jobs.selectors.placement import AttemptPlace
from jobs.selectors.proof import awaited_by
from jobs.selectors.schedules import times_of
from portal.core import clock

State = Job.State


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person wants to know first: one sentence, what stands behind it, and its hue."""

    hue: str
    sentence: str
    details: tuple[str, ...] = ()
    has_log: bool = False


def line_of(job: Job, place: AttemptPlace | None) -> str:
    """Return why the job waits, where it is, or how it ended, in one short line."""
    if job.state == State.QUEUED:
        return why_waiting(job)
    if job.is_final:
        return how_ended(job)
    if job.is_schedule or place is None:
        return schedule_line(job, place.attempt.cluster.name if place else "") if job.is_schedule else ""
    if _is_scaled_to_nothing(job):
        return _("scaled to 0")
    where = where_is(place)
    if job.state == State.RUNNING and not job.is_service:
        return where
    return f"{where}; {progress(job, place)}"


def answer_of(job: Job, place: AttemptPlace | None) -> Answer:
    """Return the answer that the page of a job begins with."""
    if job.state == State.QUEUED:
        return Answer(
            "warn" if job.reason_code else "neutral", why_waiting(job), (*_queue_details(job), *avoided_nodes(job))
        )
    if job.is_final:
        hue = {State.FAILED: "bad", State.SUCCEEDED: "good"}.get(State(job.state), "neutral")
        return Answer(hue, how_ended(job), _message(job), has_log=place is not None)
    if job.is_schedule:
        return _schedule_answer(job, place)
    if place is None:
        return Answer("active", str(job.get_state_display()))
    return _answer_at(job, place)


def _answer_at(job: Job, place: AttemptPlace) -> Answer:
    if job.state == State.STOPPING:
        return Answer("warn", _why_stopping(job, place), awaited_by(place).sentences())
    if _is_scaled_to_nothing(job):
        return Answer("neutral", _("Scaled to 0: no replica runs and no GPU is held."))
    verb = _("Runs") if job.state == State.RUNNING else _("Has its place and starts")
    details = () if job.state == State.RUNNING and not job.is_service else (progress(job, place),)
    return Answer(
        "active", f"{verb}: {where_is(place)}", (*details, *_link(place), *_missing(job), *avoided_nodes(job))
    )


def schedule_line(job: Job, where: str) -> str:
    """Return where a schedule stands, and when it comes due next."""
    if job.state == State.STOPPING:
        return _("is taken off %(cluster)s") % {"cluster": where}
    if job.is_paused:
        return _("%(cluster)s; paused") % {"cluster": where}
    numbers = {"cluster": where, "time": next(iter(times_of(job.spec["schedule"], 1)), "-")}
    return _("%(cluster)s; next %(time)s") % numbers


def _schedule_answer(job: Job, place: AttemptPlace | None) -> Answer:
    where, zone = place.attempt.cluster.name if place else "", job.spec["schedule"]["time_zone"]
    if job.state == State.STOPPING:
        return Answer("warn", _("Taken off %(cluster)s; runs that it made go on.") % {"cluster": where})
    if job.is_paused:
        return Answer("neutral", _("Paused: it makes no runs."), (_("It stands on %(cluster)s.") % {"cluster": where},))
    numbers = {"time": next(iter(times_of(job.spec["schedule"], 1)), "-"), "zone": zone}
    bound = _("On %(cluster)s, where all its runs go: each waits there for its turn.") % {"cluster": where}
    return Answer("active", _("The next run comes due %(time)s (%(zone)s).") % numbers, (bound,))


def _is_scaled_to_nothing(job: Job) -> bool:
    return job.is_service and job.workers == 0 and job.state == State.RUNNING


def why_waiting(job: Job) -> str:
    """Return the stored reason in words."""
    if not job.reason_code:
        return _("Waits for the next cycle to look at it.")
    return sentence_of(job.reason_code, job.reason_numbers)


def where_is(place: AttemptPlace) -> str:
    """Return cluster and the lowest place that holds all ranks: "sim-east, rack r2"."""
    cluster, level = place.attempt.cluster.name, place.attempt.level
    racks = {rack_of(rank) for rank in place.ranks} - {""}
    nodes = {rank.node for rank in place.ranks}
    if len(nodes) == 1:
        return _("%(cluster)s, node %(node)s") % {"cluster": cluster, "node": next(iter(nodes))}
    if len(racks) == 1:
        return _("%(cluster)s, rack %(rack)s") % {"cluster": cluster, "rack": next(iter(racks))}
    if not level:
        return cluster
    return _("%(cluster)s, within one %(level)s") % {"cluster": cluster, "level": level_name(level)}


def progress(job: Job, place: AttemptPlace) -> str:
    """Return how far an attempt has come: pods at their gate, or ready ones and what the slowest says."""
    total = len(place.ranks)
    if job.state == State.STOPPING:
        return _why_stopping(job, place)
    if job.state == State.ADMITTED:
        gated = sum(rank.is_gated for rank in place.ranks)
        return _("pods at their gate: %(gated)d of %(total)d") % {"gated": gated, "total": total}
    ready = _("%(ready)d of %(total)d ready") % {"ready": place.ready, "total": job.workers}
    slowest = next((rank for rank in place.ranks if not rank.is_ready and rank.reason), None)
    if slowest is None or job.state == State.RUNNING:
        return ready
    return f"{ready}; " + _("rank %(rank)d: %(reason)s") % {"rank": slowest.rank, "reason": slowest.reason}


def avoided_nodes(job: Job) -> tuple[str, ...]:
    """Return a sentence for each node that the job must not use now, with what happened there and until when."""
    return tuple(
        _("Not on node %(node)s until %(until)s: it failed under this job at %(at)s (%(why)s).")
        % {"node": each["name"], "why": each["why"], "at": _moment(each["at"]), "until": _moment(each["until"])}
        for each in job.exclusions_at(clock.now())
    )


def _moment(text: str) -> str:
    return date_format(timezone.localtime(datetime.fromisoformat(text)), "j M H:i")


def how_ended(job: Job) -> str:
    """Return the outcome in words."""
    if job.state == State.SUCCEEDED:
        return _("Succeeded, exit code %(code)d") % {"code": job.exit_code or 0}
    if job.state == State.CANCELLED:
        return _("Cancelled by %(who)s") % {"who": job.cancelled_by} if job.cancelled_by else _("Cancelled")
    what = str(job.get_outcome_code_display()) if job.outcome_code else _("Failed")
    where = [_("rank %(rank)d") % {"rank": job.outcome_rank}] if job.outcome_rank is not None else []
    code = [_("exit code %(code)d") % {"code": job.exit_code}] if job.exit_code is not None else []
    return ", ".join([what, *where, *code])


@dataclass(frozen=True, slots=True)
class Loss:
    """What stopping a job now throws away, in GPU-hours; `since` is its last checkpoint, None: it told of none."""

    gpu_hours: float
    since: datetime | None


def loss_of(job: Job, place: AttemptPlace | None, now: datetime) -> Loss | None:
    """Return what is lost when a training run is stopped now; None where nothing is."""
    if job.is_service or place is None or job.started_at is None or job.is_final:
        return None
    began = place.attempt.started_at or job.started_at
    since = max(filter(None, (began, place.checkpoint_at)))
    gpus = sum(rank.gpus for rank in place.ranks)
    return Loss(gpus * max(0.0, (now - since).total_seconds()) / 3600, place.checkpoint_at)


def _queue_details(job: Job) -> tuple[str, ...]:
    if job.position is None:
        return ()
    gpus = job.gpus_ahead or 0
    ahead = ngettext("%(count)d GPU ahead", "%(count)d GPUs ahead", gpus) % {"count": gpus}
    return (_("Position %(position)d in its queue, %(ahead)s.") % {"position": job.position, "ahead": ahead},)


def _message(job: Job) -> tuple[str, ...]:
    return (job.outcome_message,) if job.outcome_message else ()


def _link(place: AttemptPlace) -> tuple[str, ...]:
    link = slowest_link_of(place)
    if not link:
        return ()
    return (_("Slowest link: %(link)s.") % {"link": link},)


def _missing(job: Job) -> tuple[str, ...]:
    """A service under way may wait for places for its other replicas."""
    return (why_waiting(job),) if job.is_service and job.reason_code else ()


def _why_stopping(job: Job, place: AttemptPlace) -> str:
    if job.cancelled_by:
        return _("stops, cancelled by %(who)s") % {"who": job.cancelled_by}
    code = place.attempt.stop_code
    label = str(Job.Outcome(code).label) if code in Job.Outcome.values else ""
    return " - ".join(filter(None, (label, place.attempt.stop_message))) or _("stops")
