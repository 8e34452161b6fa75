"""Made-up jobs of the past days, so that lists and pages are not empty. They never ran, and their pages say so."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from django.db import transaction
from django.db.models import F

from jobs.models import Job, JobEvent, JobName
from jobs.services import intake, submit
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.identity.models import Team, User
from portal.seed.workload import RECIPES, Recipe

DAYS = 7
JOBS = 60
SEED = 20_261_201
# Shares of how jobs of the past ended.
ENDS = (
    (0.72, Job.State.SUCCEEDED, ""),
    (0.86, Job.State.FAILED, Job.Outcome.OOM),
    (0.94, Job.State.FAILED, Job.Outcome.USER_ERROR),
    (1.0, Job.State.CANCELLED, Job.Outcome.CANCELLED),
)


@dataclass(frozen=True, slots=True)
class Past:
    """When one job of the past was queued, started and finished, and how it ended."""

    queued: datetime
    started: datetime
    finished: datetime
    state: Job.State
    outcome: str


@transaction.atomic
def make_history() -> int:
    """Make the past once; return how many jobs that was."""
    if Job.objects.filter(is_synthetic=True).exists():
        return 0
    random = Random(SEED)  # noqa: S311 -- a repeatable past, no secret
    now = clock.now()
    pasts = sorted((_past(random, now) for _number in range(JOBS)), key=lambda past: past.queued)
    jobs: list[Job] = []
    for number, recipe in enumerate(RECIPES):
        jobs += _runs(recipe, pasts[number :: len(RECIPES)])
    queued = {job.uid: job.created_at for job in jobs}
    for job in Job.objects.bulk_create(jobs):  # which writes the moment of the insert
        job.created_at = queued[job.uid]
    Job.objects.bulk_update(jobs, ["created_at"])
    JobEvent.objects.bulk_create(
        JobEvent(job=job, at=job.finished_at or now, code="synthetic", actor=SYSTEM.name) for job in jobs
    )
    return len(jobs)


def _past(random: Random, now: datetime) -> Past:
    queued = now - timedelta(minutes=random.uniform(60, DAYS * 1440))
    started = queued + timedelta(minutes=random.expovariate(1 / 12))
    finished = min(started + timedelta(minutes=random.expovariate(1 / 90)), now - timedelta(minutes=5))
    roll = random.random()
    state, outcome = next((state, outcome) for limit, state, outcome in ENDS if roll <= limit)
    return Past(queued, min(started, finished), finished, state, outcome)


def _runs(recipe: Recipe, pasts: Sequence[Past]) -> list[Job]:
    """Return the runs of one recipe, oldest first, not stored."""
    team, owner = Team.objects.get(slug=recipe.team), User.objects.get(username=recipe.owner)
    spec = intake.read_document({**recipe.document, "labels": {"demo": "history"}}, team=team)
    request = submit.resolve(spec, team=team)
    first = _take_numbers(team, spec.name, len(pasts))
    return [_run(submit.job_of(request), owner, first + index, past) for index, past in enumerate(pasts)]


def _run(job: Job, owner: User, number: int, past: Past) -> Job:
    # Born ended: no transition ever took place, so none is recorded.
    job.owner, job.number, job.is_synthetic = owner, number, True
    job.state, job.outcome_code = past.state, past.outcome
    job.created_at, job.finished_at = past.queued, past.finished
    job.admitted_at = job.started_at = past.started
    job.exit_code = 0 if past.state == Job.State.SUCCEEDED else 1
    return job


def _take_numbers(team: Team, name: str, count: int) -> int:
    """Take the next numbers of a name and return the first of them."""
    row, _made = JobName.objects.get_or_create(team=team, name=name)
    JobName.objects.filter(pk=row.pk).update(last_number=F("last_number") + count)
    return JobName.objects.values_list("last_number", flat=True).get(pk=row.pk) - count + 1
