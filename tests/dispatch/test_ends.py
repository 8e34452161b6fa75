"""How a run ends, what is said of it, and what happens to the GPUs that it held."""

import pytest
from pytest_django import Settings

from clusters.models import Cluster, Node
from clusters.selectors.capacity import stale_cluster_ids
from jobs.accounting import drift
from jobs.dispatch import limits
from jobs.engine import cycle
from jobs.models import Attempt, Job
from jobs.selectors.documents import job_document
from portal.core import clock
from tests.dispatch.stage import Stage

State = Job.State
Step = Attempt.Step
Outcome = Job.Outcome


def test_the_first_rank_that_fails_is_named_and_not_the_peers_killed_with_it(stage: Stage) -> None:
    """Times on a cluster have a resolution of a second: all ranks end in the same one."""
    fate = {"SIM_RUN_S": "600", "SIM_RUN_S_RANK": "2:5", "SIM_EXIT_CODE_RANK": "2:3"}
    job = stage.submit(workers=4, gpus_per_worker=1, env=fate)

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.outcome_rank, job.exit_code) == (Outcome.USER_ERROR, 2, 3)
    assert stage.held() == 0
    # Its pods stay for their logs.
    assert stage.pods()


def test_memory_that_ran_out_is_told_apart(stage: Stage) -> None:
    job = stage.submit(env={"SIM_RUN_S": "5", "SIM_OOM": "1"})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.exit_code) == (Outcome.OOM, 137)


def test_a_single_worker_is_started_again_where_it_is_and_then_given_up(stage: Stage) -> None:
    job = stage.submit(gpus_per_worker=2, backoff_limit=2, env={"SIM_RUN_S": "2", "SIM_EXIT_CODE": "7"})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.exit_code) == (Outcome.USER_ERROR, 7)
    assert job.attempts.count() == 1
    assert stage.held() == 0


def test_a_gang_is_tried_again_whole_as_often_as_it_may_fail(stage: Stage) -> None:
    fate = {"SIM_RUN_S": "600", "SIM_RUN_S_RANK": "1:2", "SIM_EXIT_CODE_RANK": "1:9"}
    job = stage.submit(workers=2, backoff_limit=1, env=fate)

    stage.until_state(job, State.FAILED)

    assert job.attempts.count() == 2
    assert (job.outcome_code, job.outcome_rank, job.exit_code) == (Outcome.USER_ERROR, 1, 9)
    assert stage.held() == 0


def test_what_the_infrastructure_did_costs_the_user_no_retry(stage: Stage) -> None:
    fate = {"SIM_RUN_S": "600", "SIM_RUN_S_RANK": "1:40", "SIM_EXIT_CODE_RANK": "1:9"}
    job = stage.submit(workers=2, backoff_limit=1, env=fate)
    stage.until_state(job, State.RUNNING)
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])

    stage.until_state(job, State.FAILED)

    assert job.attempts.count() == 3


def test_a_checkout_reports_its_commit(stage: Stage) -> None:
    job = stage.submit(code={"git_url": "https://example.org/code.git", "ref": "main"}, env={"SIM_RUN_S": "5"})

    stage.until_state(job, State.SUCCEEDED)

    assert len(job.commit.split()[0]) == 40


@pytest.mark.parametrize("backoff_limit", [0, 1])
def test_a_checkout_that_fails_is_told_apart_from_the_program(stage: Stage, backoff_limit: int) -> None:
    code = {"git_url": "https://example.org/code.git", "ref": "does-not-exist"}
    job = stage.submit(code=code, backoff_limit=backoff_limit)

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Outcome.CODE_CHECKOUT
    assert "does-not-exist" in job.outcome_message
    assert job.commit == ""


def test_a_run_is_stopped_at_its_time_limit(stage: Stage) -> None:
    job = stage.submit(workers=2)
    stage.until_state(job, State.RUNNING)
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "max_runtime_s": 1})
    Attempt.objects.filter(job=job).update(due_at=clock.now())

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.attempts.count()) == (Outcome.TIMEOUT, 1)
    assert not stage.pods()
    assert stage.held() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_its_cluster_ends_at_the_deadline_has_reached_its_limit(stage: Stage, workers: int) -> None:
    """The portal stops a run itself; where it is away the controller does, some minutes later."""
    job = stage.submit(workers=workers, max_runtime_s=3600)
    stage.until_state(job, State.RUNNING)
    [found] = stage.objects()
    assert found["spec"]["activeDeadlineSeconds"] == 3600 + limits.GATHER_S + limits.START_S
    stage.patch("jobs", found["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 1}})

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.attempts.count()) == (Outcome.TIMEOUT, 1)
    assert "deadline" in job.outcome_message
    assert stage.held() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_pod_that_somebody_deletes_while_it_runs_costs_an_attempt(stage: Stage, workers: int) -> None:
    job = stage.submit(workers=workers, backoff_limit=0 if workers > 1 else 3)
    stage.until_state(job, State.RUNNING)
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])

    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert job.excluded_node_ids(clock.now()) == []
    assert stage.held() == 8 * workers
    assert len(stage.bound()) == workers


@pytest.mark.parametrize("propagation", ["Background", "Orphan"])
def test_a_job_that_somebody_deletes_while_it_runs_costs_an_attempt(stage: Stage, propagation: str) -> None:
    """Orphaned pods run on: they are deleted before the next attempt starts."""
    job = stage.submit(workers=2)
    stage.until_state(job, State.RUNNING)
    stage.delete("jobs", job.attempts.get().object_name, propagation=propagation)

    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert stage.held() == 16
    assert len(stage.bound()) == 2


def test_a_finished_run_whose_object_is_deleted_stays_finished(stage: Stage) -> None:
    job = stage.submit(env={"SIM_RUN_S": "60"})
    stage.until_state(job, State.RUNNING)
    stage.simulated.wait_for(lambda: not stage.bound(), "its pod has ended", timeout_s=30)
    stage.delete("jobs", job.attempts.get().object_name)
    stage.simulated.wait_for(lambda: not stage.pods(), "nothing is left")

    stage.until_state(job, State.SUCCEEDED)

    assert job.attempts.count() == 1


def test_only_the_share_of_a_lost_node_is_held_until_proof(stage: Stage) -> None:
    job = stage.submit(workers=2, topology={"mode": "require", "level": "rack"})
    stage.until_state(job, State.RUNNING)
    lost = job.attempts.get().allocations.get(rank=1).node
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/fail")

    stage.until_state(job, State.STOPPING)
    stage.until(lambda: stage.held() == 8, "the other node is free")
    for _ in range(10):
        stage.turn()
    assert stage.held() == 8
    assert job.attempts.count() == 1

    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/recover")
    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert job.attempts.get(number=1).stop_code == Outcome.NODE_LOST
    assert job.excluded_node_ids(clock.now()) == [lost.pk]
    assert lost.name not in stage.bound()
    assert stage.held() == 16


def test_a_lost_node_is_the_cause_though_its_peers_fail_first(stage: Stage) -> None:
    """Collective operations abort within seconds; a cluster gives a node up after minutes."""
    fate = {"SIM_RUN_S": "600", "SIM_RUN_S_RANK": "0:120", "SIM_EXIT_CODE_RANK": "0:1"}
    job = stage.submit(workers=2, env=fate)
    stage.until_state(job, State.RUNNING)
    lost = job.attempts.get().allocations.get(rank=1).node
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/fail")
    stage.until(lambda: Node.objects.filter(pk=lost.pk, is_ready=False).exists(), "the node is not ready")

    stage.until_state(job, State.STOPPING)
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/recover")
    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")

    job.refresh_from_db()
    assert job.attempts.get(number=1).stop_code == Outcome.NODE_LOST
    assert job.excluded_node_ids(clock.now()) == [lost.pk]


def test_an_outage_freezes_what_runs_and_loses_nothing(stage: Stage, settings: Settings) -> None:
    settings.MUSTER_STALE_AFTER_S = 2.0
    short = stage.submit(env={"SIM_RUN_S": "60"})
    long = stage.submit()
    for job in (short, long):
        stage.until_state(job, State.RUNNING)

    stage.simulated.control("POST", "/simulated/outage", {"seconds": 300})
    stage.until(lambda: stale_cluster_ids(clock.now()) == {stage.cluster.pk}, "the cluster is stale")
    late = stage.submit()
    stage.cancel(long)
    for _ in range(10):
        stage.turn()
    short.refresh_from_db()
    late.refresh_from_db()
    long.refresh_from_db()
    assert (short.state, long.state, late.state) == (State.RUNNING, State.RUNNING, State.QUEUED)
    assert late.reason_code == "cluster_stale"
    assert job_document(short)["cluster_stale"] is True
    assert stage.held() == 16

    stage.simulated.control("POST", "/simulated/outage", {"seconds": 0})
    stage.until_state(short, State.SUCCEEDED)
    stage.until_state(long, State.CANCELLED)
    stage.until_state(late, State.RUNNING)

    assert Cluster.objects.get().heard_at is not None
    assert [job.attempts.count() for job in (short, long, late)] == [1, 1, 1]
    assert stage.held() == 8


@pytest.mark.parametrize("step", [step for step in Step if step not in (Step.PLANNED, Step.ENDED, Step.STOPPING)])
def test_a_cancel_at_any_step_leaves_nothing_behind(stage: Stage, step: Step) -> None:
    job = stage.submit(workers=2)
    stage.until_step(job, step)

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    _assert_nothing_is_left(stage, job)
    if step in (Step.CREATED, Step.ATTACHED, Step.GATHERING, Step.RELEASING):
        assert not stage.was_bound(job.attempts.get())


def test_a_cancel_before_anything_was_sent_leaves_nothing_behind(stage: Stage) -> None:
    job = stage.submit(workers=2)
    cycle.run_once()
    assert job.attempts.get().step == Step.PLANNED

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    _assert_nothing_is_left(stage, job)


def test_a_cancel_while_it_is_stopped_for_another_reason_wins_over_another_try(stage: Stage) -> None:
    job = stage.submit(workers=2)
    stage.until_state(job, State.RUNNING)
    stage.delete("jobs", job.attempts.get().object_name)
    stage.until_state(job, State.STOPPING)

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    assert job.attempts.count() == 1
    _assert_nothing_is_left(stage, job)


def test_two_gangs_of_which_one_fits_take_turns_whole(stage: Stage) -> None:
    jobs = [stage.submit(workers=4, env={"SIM_RUN_S": "10"}) for _ in range(2)]
    seen: set[tuple[int, int]] = set()

    def both_ended() -> bool:
        seen.add(tuple(job.attempts.filter(allocations__released_at=None).count() for job in jobs))  # type: ignore[arg-type]
        return all(Job.objects.get(pk=job.pk).state == State.SUCCEEDED for job in jobs)

    stage.until(both_ended, "both succeed")

    # Ranks that each holds: all of one, or none. (Ranks are given back one by one when a gang ends whole.)
    assert (4, 4) not in seen
    assert not any(first and second for first, second in seen)
    assert stage.held() == 0


def _assert_nothing_is_left(stage: Stage, job: Job) -> None:
    assert (job.outcome_code, job.finished_at is not None) == (Outcome.CANCELLED, True)
    assert stage.pods() == []
    assert stage.objects() == []
    assert stage.objects("services") == []
    assert stage.held() == 0
    assert drift.findings() == []
