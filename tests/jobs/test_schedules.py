"""Schedules as people see them: preview, form, list, page, REST, and who may pause one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import ObservedObject
from jobs.engine import seats
from jobs.models import Attempt, Job
from jobs.services import schedules
from jobs.services.intake import read_document
from jobs.services.submit import resolve, submit_job
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.identity.models import Team, User
from tests.jobs.scenes import Supply, place

BrowserOf = Callable[[User], Client]
ApiOf = Callable[[User], APIClient]
pytestmark = pytest.mark.django_db
DOCUMENT = {"name": "nightly", "image": "team/torch:2.9", "workload": "cronjob", "gpus_per_worker": 2}
NIGHTLY = {**DOCUMENT, "schedule": {"cron": "0 3 * * *", "time_zone": "Europe/Berlin"}}


@pytest.fixture
def schedule(team: Team, alice: User, supply: Supply) -> Job:
    """One that stands on its cluster and has made one run."""
    request = resolve(read_document(NIGHTLY, team=team), team=team)
    job = submit_job(actor=SYSTEM, owner=alice, request=request)
    attempt = place(job, supply)
    Attempt.objects.filter(pk=attempt.pk).update(object_uid="cron-uid")
    Job.objects.filter(pk=job.pk).update(state="running", started_at=clock.now())
    job.refresh_from_db()
    attempt.refresh_from_db()
    schedules.take_run(
        schedule=job, attempt=attempt, uid="job-uid", name=f"{attempt.object_name}-29000000", due_at=None
    )
    return job


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_schedule_asks_for_nothing_and_its_run_for_all(schedule: Job) -> None:
    run = schedules.runs_of(schedule).get()

    assert (schedule.gpus, schedule.workers, schedule.min_workers) == (0, 0, 0)
    assert (run.gpus, run.workers, run.workload, run.full_name) == (2, 1, "job", "nightly-2")
    assert run.cluster_ids == [schedule.attempts.get().cluster_id]


def test_a_job_is_taken_once(schedule: Job) -> None:
    attempt = schedule.attempts.get()

    assert schedules.take_run(schedule=schedule, attempt=attempt, uid="job-uid", name="x", due_at=None) is None
    assert schedules.runs_of(schedule).count() == 1


def test_its_page_shows_the_next_times_and_its_runs(schedule: Job, alice: User, browser_of: BrowserOf) -> None:
    page = text(browser_of(alice), f"/jobs/{schedule.uid}/")

    assert "Scheduled" in page
    assert page.count(", 03:00") >= 3
    assert "Europe/Berlin" in page
    assert "nightly-2" in page
    assert "Pause" in page
    for tab in ("logs", "charts", "ranks", "events", "yaml"):
        text(browser_of(alice), f"/jobs/{schedule.uid}/?tab={tab}")


def test_its_page_says_what_the_cluster_says_of_it(schedule: Job, alice: User, browser_of: BrowserOf) -> None:
    ObservedObject.objects.create(
        cluster=schedule.attempts.get().cluster,
        kind="CronJob",
        uid="cron-uid",
        namespace="n",
        name="m",
        run=schedule.uid,
        attempt=1,
        resource_version="1",
        seen_at=clock.now(),
        warning="Missed scheduled time to start a job",
    )

    assert "Missed scheduled time" in text(browser_of(alice), f"/jobs/{schedule.uid}/")


def test_the_page_of_a_run_names_its_schedule_and_shows_its_own_job(
    schedule: Job, alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    run = schedules.runs_of(schedule).get()
    attempt = place(run, supply)
    Attempt.objects.filter(pk=attempt.pk).update(object_name=run.adopted["name"])

    assert "A run of the schedule" in text(browser_of(alice), f"/jobs/{run.uid}/")
    yaml = text(browser_of(alice), f"/jobs/{run.uid}/?tab=yaml")
    assert run.adopted["name"] in yaml
    assert f"muster.internal/schedule: {schedule.uid}" in yaml


def test_lists_and_home_show_it_calmly(schedule: Job, alice: User, browser_of: BrowserOf) -> None:
    for address in ("/jobs/", "/"):
        page = text(browser_of(alice), address)
        assert "sim-east; next" in page
        assert "Scheduled" in page


def test_it_is_paused_and_resumed_from_its_page(schedule: Job, alice: User, browser_of: BrowserOf) -> None:
    browser = browser_of(alice)
    browser.post(f"/jobs/{schedule.uid}/pause/", {"paused": "yes"})
    schedule.refresh_from_db()
    assert schedule.is_paused

    page = text(browser, f"/jobs/{schedule.uid}/")
    assert "Paused: it makes no runs" in page
    browser.post(f"/jobs/{schedule.uid}/pause/", {"paused": "no"})
    schedule.refresh_from_db()
    assert not schedule.is_paused


def test_rest_shows_and_pauses_it(schedule: Job, alice: User, api_of: ApiOf) -> None:
    api = api_of(alice)
    shown = api.get(f"/api/v1/jobs/{schedule.uid}/").json()
    assert (len(shown["next_times"]), shown["is_paused"], shown["gpus"]) == (3, False, 0)

    answer = api.post(f"/api/v1/jobs/{schedule.uid}/pause/", {"is_paused": True}, format="json")
    assert (answer.status_code, answer.json()["is_paused"], answer.json()["next_times"]) == (200, True, [])
    for body in ({}, {"is_paused": "yes"}, {"is_paused": True, "x": 1}):
        assert api.post(f"/api/v1/jobs/{schedule.uid}/pause/", body, format="json").status_code == 422
    run = schedules.runs_of(schedule).get()
    answer = api.post(f"/api/v1/jobs/{run.uid}/pause/", {"is_paused": True}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_a_schedule")
    assert api.get(f"/api/v1/jobs/{run.uid}/").json()["next_times"] is None


@pytest.mark.parametrize(
    ("document", "field", "code"),
    [
        ({**DOCUMENT, "schedule": "61 * * * *"}, "schedule", "cron_value"),
        ({**DOCUMENT, "schedule": {"cron": "0 0 30 2 *"}}, "schedule.cron", "cron_never"),
        (DOCUMENT, "schedule", "required"),
        ({**NIGHTLY, "workload": "job"}, "schedule", "schedule_of_cronjobs_only"),
    ],
)
def test_rest_names_what_is_wrong(
    document: dict[str, Any], field: str, code: str, alice: User, team: Team, supply: Supply, api_of: ApiOf
) -> None:
    answer = api_of(alice).post(f"/api/v1/jobs/?team={team.slug}", document, format="json")

    assert answer.status_code == 422
    assert [(each["field"], each["code"]) for each in answer.json()["errors"]] == [(field, code)]


@pytest.mark.django_db(transaction=True)
def test_a_preview_shows_the_next_times_and_where_a_run_would_start(
    alice: User, team: Team, supply: Supply, api_of: ApiOf
) -> None:
    answer = api_of(alice).post(f"/api/v1/preview/?team={team.slug}", NIGHTLY, format="json")

    assert answer.status_code == 200, answer.json()
    verdict = answer.json()
    assert (verdict["outcome"], verdict["gpus"], verdict["cluster"]) == ("starts", 2, "sim-east")
    assert verdict["objects"][0]["kind"] == "CronJob"
    assert len(verdict["next_times"]) == 3


def test_a_schedule_waits_for_its_cluster_apart_from_the_queue(team: Team, alice: User, supply: Supply) -> None:
    request = resolve(read_document(NIGHTLY, team=team), team=team)
    job = submit_job(actor=SYSTEM, owner=alice, request=request)

    assert list(seats.waiting()) == [job]
