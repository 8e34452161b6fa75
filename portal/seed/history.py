"""Made-up jobs of the past days, so that lists and pages are not empty. They never ran, and their pages say so."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from django.db import transaction

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
    for number in range(JOBS):
        _make(RECIPES[number % len(RECIPES)], _past(random, now))
    return JOBS


def _past(random: Random, now: datetime) -> Past:
    queued = now - timedelta(minutes=random.uniform(60, DAYS * 1440))
    started = queued + timedelta(minutes=random.expovariate(1 / 12))
    finished = min(started + timedelta(minutes=random.expovariate(1 / 90)), now - timedelta(minutes=5))
    roll = random.random()
    state, outcome = next((state, outcome) for limit, state, outcome in ENDS if roll <= limit)
    return Past(queued, min(started, finished), finished, state, outcome)


def _make(recipe: Recipe, past: Past) -> None:
    team = Team.objects.get(slug=recipe.team)
    spec = intake.read_document({**recipe.document, "labels": {"demo": "history"}}, team=team)
    job = submit.job_of(submit.resolve(spec, team=team))
    row, _made = JobName.objects.get_or_create(team=team, name=job.name)
    row.last_number += 1
    row.save(update_fields=["last_number"])
    job.owner = User.objects.get(username=recipe.owner)
    job.number = row.last_number
    # Born ended: no transition ever took place, so none is recorded.
    job.state, job.outcome_code, job.is_synthetic = past.state, past.outcome, True
    job.admitted_at = job.started_at = past.started
    job.finished_at = past.finished
    job.exit_code = 0 if past.state == Job.State.SUCCEEDED else 1
    job.save(force_insert=True)
    # auto_now_add sets the moment of the insert.
    Job.objects.filter(pk=job.pk).update(created_at=past.queued)
    JobEvent.objects.create(job=job, at=past.finished, code="synthetic", actor=SYSTEM.name)
