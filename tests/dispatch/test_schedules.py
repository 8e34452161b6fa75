"""Schedules: the cluster makes the Jobs, and each waits in our queue, gets its place and is charged like any other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusters.models import ObservedObject
from jobs.dispatch import leftovers
from jobs.models import Attempt, Job
from jobs.services import schedules
from portal.core.audit import SYSTEM
from tests.dispatch.stage import Stage

State = Job.State
NEVER_SOON = "0 0 1 1 *"


def plan(stage: Stage, cron: str = NEVER_SOON, **fields: Any) -> Job:
    """Submit a schedule and wait until its CronJob stands and is known."""
    schedule = {"cron": cron, **fields.pop("schedule", {})}
    job = stage.submit(**{"name": "nightly", "workload": "cronjob", "schedule": schedule, **fields})
    stage.until_state(job, State.RUNNING)
    stage.until(lambda: ObservedObject.objects.filter(kind="CronJob", gone_at=None).exists(), "the mirror knows it")
    return job


def cron_job(stage: Stage) -> Any:
    [found] = stage.objects("cronjobs")
    return found


def make(stage: Stage, name: str = "by-hand") -> Any:
    """Make a Job of the only schedule."""
    return make_by_hand(stage, cron_job(stage), name)


def make_of(stage: Stage, schedule: Job, name: str) -> Any:
    """Make a Job of one of several schedules."""
    attempt = schedule.attempts.get()
    [owner] = [each for each in stage.objects("cronjobs") if each["metadata"]["name"] == attempt.object_name]
    return make_by_hand(stage, owner, name)


def make_by_hand(stage: Stage, owner: Any, name: str) -> Any:
    """Make a Job as `kubectl create job --from=cronjob/...` does."""
    template, meta = owner["spec"]["jobTemplate"], owner["metadata"]
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    metadata = {"name": name, "labels": template["metadata"]["labels"], "ownerReferences": [reference]}
    return stage.create("jobs", {"metadata": metadata, "spec": template["spec"]})


def runs(schedule: Job) -> list[Job]:
    return list(schedules.runs_of(schedule).order_by("pk"))


def first_run(stage: Stage, schedule: Job) -> Job:
    found: list[Job] = stage.until(lambda: runs(schedule), "its run is queued")
    return found[0]


def told(job: Job, code: str) -> list[dict[str, Any]]:
    return list(job.events.filter(code=code).order_by("pk").values_list("data", flat=True))


def test_a_schedule_holds_nothing_and_stands_on_the_cluster_as_it_was_asked_for(stage: Stage) -> None:
    schedule = plan(stage, schedule={"time_zone": "Europe/Berlin", "starting_deadline_s": 300})

    made = cron_job(stage)["spec"]
    assert (made["schedule"], made["timeZone"], made["concurrencyPolicy"]) == (NEVER_SOON, "Europe/Berlin", "Forbid")
    assert (made["startingDeadlineSeconds"], made["suspend"]) == (300, False)
    assert (made["successfulJobsHistoryLimit"], made["failedJobsHistoryLimit"]) == (3, 1)
    assert made["jobTemplate"]["spec"]["suspend"] is True
    assert made["jobTemplate"]["spec"]["template"]["spec"]["schedulingGates"]
    assert (schedule.gpus, schedule.workers, stage.held(), stage.objects("jobs")) == (0, 0, 0, [])


def test_a_run_that_comes_due_is_queued_placed_charged_and_ends_like_any_other(stage: Stage) -> None:
    schedule = plan(stage, "* * * * *", env={"SIM_RUN_S": "20"})
    before = (datetime.now(UTC) - timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    stage.patch_status("cronjobs", cron_job(stage)["metadata"]["name"], {"lastScheduleTime": before})

    run = first_run(stage, schedule)
    [job] = stage.objects("jobs")
    assert (run.adopts, run.parent_id) == (job["metadata"]["uid"], schedule.pk)
    assert (run.gpus, run.workload, run.spec.get("schedule")) == (8, "job", None)
    due_at = datetime.fromisoformat(run.adopted["due_at"])
    assert timedelta(0) <= datetime.now(UTC) - due_at < timedelta(minutes=2)
    stage.until_state(run, State.RUNNING)

    attempt = run.attempts.get()
    [pod] = stage.pods()
    assert attempt.object_name == job["metadata"]["name"]
    assert pod["spec"]["nodeName"] == attempt.allocations.get().node.name
    assert stage.held() == 8
    stage.until_state(run, State.SUCCEEDED)
    assert (stage.held(), run.exit_code) == (0, 0)
    schedule.refresh_from_db()
    assert schedule.state == State.RUNNING


def test_a_run_waits_suspended_for_its_turn(stage: Stage) -> None:
    blocker = stage.submit(workers=4)
    stage.until_state(blocker, State.RUNNING)
    schedule = plan(stage)
    make(stage)

    run = first_run(stage, schedule)
    for _ in range(10):
        stage.turn()
    run.refresh_from_db()
    assert (run.state, run.reason_code) == (State.QUEUED, "capacity")
    assert [job["spec"]["suspend"] for job in stage.objects("jobs") if job["metadata"]["name"] == "by-hand"] == [True]
    stage.cancel(blocker)
    stage.until_state(run, State.RUNNING)


def test_a_gang_of_a_schedule_finds_its_first_rank(stage: Stage) -> None:
    schedule = plan(stage, workers=2)
    make(stage)
    run = first_run(stage, schedule)
    stage.until_state(run, State.RUNNING)

    name = cron_job(stage)["metadata"]["name"]
    pods = stage.pods()
    assert sorted(pod["spec"]["hostname"] for pod in pods) == ["by-hand-0", "by-hand-1"]
    assert {pod["spec"]["subdomain"] for pod in pods} == {name}
    env = {each["name"]: each for each in pods[0]["spec"]["containers"][0]["env"]}
    assert env["MASTER_ADDR"]["value"] == f"$(MUSTER_JOB)-0.{name}"
    assert "job-name" in env["MUSTER_JOB"]["valueFrom"]["fieldRef"]["fieldPath"]
    [service] = stage.objects("services")
    selector = service["spec"]["selector"]
    assert all(selector.items() <= pod["metadata"]["labels"].items() for pod in pods)
    assert stage.held() == 16


def test_while_a_run_is_started_once_more_no_other_is_made(stage: Stage) -> None:
    schedule = plan(stage)
    make(stage)
    run = first_run(stage, schedule)
    stage.until_state(run, State.RUNNING)
    stage.delete("jobs", "by-hand")
    stage.until(lambda: run.attempts.filter(number=2, step=Attempt.Step.RUNNING).exists(), "the second attempt")

    make(stage, "too-soon")
    stage.until(lambda: told(schedule, "run_forbidden"), "it is left out")

    assert told(schedule, "run_forbidden")[0]["run"] == run.full_name
    stage.until(lambda: "too-soon" not in names(stage), "its Job is gone")
    assert [each.pk for each in runs(schedule)] == [run.pk]


def names(stage: Stage) -> list[str]:
    return [job["metadata"]["name"] for job in stage.objects("jobs")]


def test_runs_may_overlap_or_take_each_others_place(stage: Stage) -> None:
    schedule = plan(stage, schedule={"concurrency": "allow"})
    make(stage, "one")
    make(stage, "two")
    stage.until(lambda: [run.state for run in runs(schedule)] == [State.RUNNING] * 2, "both run")

    other = plan_another(stage, "replace")
    make_of(stage, other, "three")
    first = first_run(stage, other)
    stage.until_state(first, State.RUNNING)
    make_of(stage, other, "four")
    stage.until_state(first, State.CANCELLED)
    stage.until(lambda: [run.state for run in runs(other)][1:] == [State.RUNNING], "the next one runs")


def plan_another(stage: Stage, concurrency: str) -> Job:
    job = stage.submit(name="other", workload="cronjob", schedule={"cron": NEVER_SOON, "concurrency": concurrency})
    stage.until_state(job, State.RUNNING)
    return job


def test_cancelling_a_schedule_lets_its_run_go_on(stage: Stage) -> None:
    schedule = plan(stage, workers=2)
    make(stage)
    run = first_run(stage, schedule)
    stage.until_state(run, State.RUNNING)

    stage.cancel(schedule)
    stage.until_state(schedule, State.CANCELLED)

    assert stage.objects("cronjobs") == []
    for _ in range(10):
        stage.turn()
    run.refresh_from_db()
    assert (run.state, stage.held()) == (State.RUNNING, 16)
    assert leftovers.sweep() == 0  # its ranks need their names
    stage.cancel(run)
    stage.until_state(run, State.CANCELLED)
    assert leftovers.sweep() == 1
    assert (stage.objects("services"), stage.held()) == ([], 0)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_run_that_is_cancelled_leaves_no_job_that_would_count_as_under_way(stage: Stage, state: str) -> None:
    blocker = stage.submit(workers=4) if state == State.QUEUED else None
    if blocker:
        stage.until_state(blocker, State.RUNNING)
    schedule = plan(stage)
    make(stage)
    run = first_run(stage, schedule)
    stage.until_state(run, state)

    stage.cancel(run)
    stage.until_state(run, State.CANCELLED)

    stage.until(lambda: "by-hand" not in names(stage), "its Job is gone", 30)


def test_a_run_whose_job_is_deleted_while_it_waits_is_over(stage: Stage) -> None:
    blocker = stage.submit(workers=4)
    stage.until_state(blocker, State.RUNNING)
    schedule = plan(stage)
    make(stage)
    run = first_run(stage, schedule)

    stage.delete("jobs", "by-hand")
    stage.until_state(run, State.CANCELLED, timeout_s=30)

    assert "deleted" in run.outcome_message


def test_a_paused_schedule_is_suspended_on_its_cluster_and_goes_on_when_told(stage: Stage) -> None:
    schedule = plan(stage)

    schedules.pause_schedule(actor=SYSTEM, job=schedule, is_paused=True)
    stage.until(lambda: cron_job(stage)["spec"]["suspend"], "it is suspended")
    schedules.pause_schedule(actor=SYSTEM, job=schedule, is_paused=False)
    stage.until(lambda: not cron_job(stage)["spec"]["suspend"], "it goes on")

    assert [event.code for event in schedule.events.order_by("pk")][-2:] == ["paused", "resumed"]


def test_a_schedule_that_somebody_deletes_is_made_again(stage: Stage) -> None:
    schedule = plan(stage)

    stage.delete("cronjobs", cron_job(stage)["metadata"]["name"])
    stage.until(lambda: schedule.attempts.filter(number=2, step=Attempt.Step.RUNNING).exists(), "it is made again")

    assert len(stage.objects("cronjobs")) == 1


def test_a_schedule_goes_where_a_run_would_start_if_all_were_free(stage: Stage) -> None:
    blocker = stage.submit(workers=4)
    stage.until_state(blocker, State.RUNNING)

    schedule = plan(stage)

    assert schedule.attempts.get().cluster == stage.cluster


def test_a_schedule_whose_runs_fit_nowhere_says_so_and_waits(stage: Stage) -> None:
    job = stage.submit(workload="cronjob", schedule=NEVER_SOON, workers=5)
    stage.turn()

    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.QUEUED, "never_fits")
    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)
