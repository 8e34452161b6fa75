"""Gangs of several pod sets: one barrier over all of them, one place, one end."""

from typing import Any

import pytest

from jobs.engine import cycle
from jobs.models import Attempt, Job
from tests.dispatch.stage import Stage

State = Job.State
Step = Attempt.Step
Outcome = Job.Outcome
PS: dict[str, Any] = {"name": "ps", "workers": 3, "cpu": {"request": "4"}, "memory": {"request": "8Gi"}}
GANG: dict[str, Any] = {"workers": 2, "pod_sets": [PS], "env": {"SIM_RUN_S": "600"}}


def of_set(stage: Stage, name: str) -> list[Any]:
    """The pods of a further set; "" for the workers."""
    label = "muster.internal/set"
    return [pod for pod in stage.pods() if pod["metadata"]["labels"].get(label, "") == name]


def test_all_sets_start_together_each_pod_where_it_was_placed(stage: Stage) -> None:
    job = stage.submit(**GANG)

    stage.until_state(job, State.RUNNING)

    attempt = job.attempts.get()
    planned = {row.rank: row.node.name for row in attempt.allocations.select_related("node")}
    assert sorted(planned) == [0, 1, 2, 3, 4]
    assert [planned[rank] for rank in (2, 3, 4)] == [planned[0], planned[1], planned[0]]
    index = "batch.kubernetes.io/job-completion-index"
    first = "muster.internal/first-rank"
    labels = [(pod["metadata"]["labels"], pod["spec"]["nodeName"]) for pod in stage.pods()]
    assert {int(of[index]) + int(of.get(first, 0)): node for of, node in labels} == planned
    # Only the workers have GPUs.
    assert stage.held() == 16
    assert {row["metadata"]["name"] for row in stage.objects()} == {attempt.object_name, f"{attempt.object_name}-ps"}


def test_the_run_ends_with_its_workers_and_the_other_pods_are_stopped(stage: Stage) -> None:
    servers = {**PS, "env": {"SIM_RUN_S": "9000"}}
    job = stage.submit(**{**GANG, "pod_sets": [servers], "env": {"SIM_RUN_S": "20"}})

    stage.until_state(job, State.SUCCEEDED)

    assert (job.exit_code, stage.held(), stage.bound()) == (0, 0, [])
    assert job.attempts.get().allocations.filter(released_at=None).count() == 0
    # The workers' pods stay for their logs.
    assert len(of_set(stage, "")) == 2


def test_a_further_set_that_fails_takes_the_workers_along(stage: Stage) -> None:
    servers = {**PS, "env": {"SIM_RUN_S": "5", "SIM_EXIT_CODE": "4"}}
    job = stage.submit(**{**GANG, "pod_sets": [servers]})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.exit_code) == (Outcome.USER_ERROR, 4)
    assert job.outcome_rank in (2, 3, 4)
    assert stage.held() == 0
    assert stage.bound() == []


def test_room_for_the_workers_alone_is_no_room(stage: Stage) -> None:
    huge = {**PS, "workers": 1, "cpu": {"request": "100000"}}
    job = stage.submit(**{**GANG, "pod_sets": [huge]})

    for _beat in range(5):
        stage.turn()
    job.refresh_from_db()

    assert (job.state, job.attempts.count()) == (State.QUEUED, 0)
    assert (job.reason_code, job.reason_numbers["limit"]) == ("never_fits", "cpu")
    assert stage.objects() == []


@pytest.mark.parametrize("position", [1, 2])
def test_a_job_whose_creation_was_not_answered_is_adopted(stage: Stage, position: int) -> None:
    job = stage.submit(**GANG)
    cycle.run_once()
    if position == 2:
        stage.until_step(job, Step.CREATED)
    stage.simulated.control("POST", "/simulated/lose-reply", {"method": "POST", "kind": "Job"})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1
    assert len(stage.pods()) == 5


def test_what_is_cancelled_is_gone_whole(stage: Stage) -> None:
    job = stage.submit(**GANG)
    stage.until_state(job, State.RUNNING)

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    stage.simulated.wait_for(lambda: not stage.pods() and not stage.objects(), "nothing is left")
    assert stage.held() == 0


@pytest.mark.parametrize("what", ["pod", "job"])
def test_a_set_that_somebody_breaks_starts_the_whole_gang_anew(stage: Stage, what: str) -> None:
    job = stage.submit(**GANG)
    stage.until_state(job, State.RUNNING)
    first = {pod["metadata"]["uid"] for pod in stage.pods()}
    if what == "pod":
        stage.delete("pods", of_set(stage, "ps")[0]["metadata"]["name"])
    else:
        stage.delete("jobs", f"{job.attempts.get().object_name}-ps")

    stage.until(lambda: job.attempts.filter(number=2, step=Step.RUNNING).exists(), "the second attempt runs")

    assert first.isdisjoint(pod["metadata"]["uid"] for pod in stage.pods())
    assert len(stage.bound()) == 5
