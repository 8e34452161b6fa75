"""Quick runs: one bare pod, placed and proven like any gang, with nobody on the cluster to look after it but us."""

from datetime import timedelta

import pytest

from clusters.models import ObservedPod
from jobs.dispatch import leftovers
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock
from tests.dispatch.stage import Stage

State = Job.State
Step = Attempt.Step
Outcome = Job.Outcome


def quick(stage: Stage, **fields: object) -> Job:
    return stage.submit(**{"name": "quick", "workload": "pod", "gpus_per_worker": 1, **fields})


def test_a_quick_run_is_one_pod_where_it_was_placed_and_gives_all_back(stage: Stage) -> None:
    job = quick(stage, env={"SIM_RUN_S": "20"})

    stage.until_state(job, State.RUNNING)
    attempt = job.attempts.get()
    assert stage.objects() == []
    [pod] = stage.pods()
    assert pod["metadata"]["name"] == attempt.object_name
    assert pod["spec"]["nodeName"] == attempt.allocations.get().node.name
    assert stage.held() == 1
    stage.until_state(job, State.SUCCEEDED)

    assert (job.exit_code, stage.held()) == (0, 0)
    # It stays for its log.
    assert [pod["status"]["phase"] for pod in stage.pods()] == ["Succeeded"]


def test_a_pod_whose_creation_was_not_answered_is_adopted(stage: Stage) -> None:
    job = quick(stage)
    cycle.run_once()
    stage.simulated.control("POST", "/simulated/lose-reply", {"method": "POST", "kind": "Pod"})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1
    assert len(stage.pods()) == 1


def test_a_quick_run_that_fails_says_how_and_is_not_tried_again(stage: Stage) -> None:
    job = quick(stage, env={"SIM_RUN_S": "2", "SIM_EXIT_CODE": "3"})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.exit_code, job.attempts.count()) == (Outcome.USER_ERROR, 3, 1)
    assert stage.held() == 0


def test_a_quick_run_that_is_cancelled_is_gone_before_its_gpu_is_free(stage: Stage) -> None:
    job = quick(stage)
    stage.until_state(job, State.RUNNING)

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    assert stage.pods() == []
    assert stage.held() == 0


def test_a_pod_that_somebody_deletes_runs_again_as_the_next_attempt(stage: Stage) -> None:
    job = quick(stage)
    stage.until_state(job, State.RUNNING)
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])

    stage.until(lambda: job.attempts.filter(number=2, step=Step.RUNNING).exists(), "the second attempt runs")

    assert len(stage.bound()) == stage.held() == 1


def test_a_pod_that_its_node_ends_at_the_deadline_has_reached_its_limit(stage: Stage) -> None:
    job = quick(stage, max_runtime_s=3600)
    stage.until_step(job, Step.RELEASING)
    [pod] = stage.pods()
    assert pod["spec"]["activeDeadlineSeconds"] > 3600
    stage.patch("pods", pod["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 20}})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.attempts.count()) == (Outcome.TIMEOUT, 1)
    assert "longer than the specified deadline" in job.outcome_message
    assert stage.held() == 0


@pytest.mark.parametrize("ttl_s", [60, None])
def test_a_pod_that_is_over_goes_when_its_time_to_live_has_passed(stage: Stage, ttl_s: int | None) -> None:
    job = quick(stage, ttl_s=ttl_s, env={"SIM_RUN_S": "1"})
    stage.until_state(job, State.SUCCEEDED)
    stage.simulated.wait_for(ObservedPod.objects.filter(phase="Succeeded").exists, "the mirror knows")
    assert leftovers.sweep() == 0
    Job.objects.filter(pk=job.pk).update(finished_at=clock.now() - timedelta(hours=1))

    assert leftovers.sweep() == (0 if ttl_s is None else 1)

    wanted = [] if ttl_s else [job.attempts.get().object_name]
    stage.simulated.wait_for(lambda: [pod["metadata"]["name"] for pod in stage.pods()] == wanted, "what is left")
