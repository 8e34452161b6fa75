"""StatefulSets: ranks with names that stay, placed all or none, until they are stopped."""

import pytest

from clusters.models import ObservedObject
from jobs.dispatch import limits
from jobs.engine import cycle
from jobs.models import Attempt, Job
from tests.dispatch.stage import Stage

State = Job.State
Step = Attempt.Step
Outcome = Job.Outcome
GANG = {"name": "shards", "workload": "statefulset", "workers": 2, "env": {}}


def test_every_rank_has_its_name_its_number_and_its_planned_node(stage: Stage) -> None:
    job = stage.submit(**GANG)

    stage.until_state(job, State.RUNNING)

    attempt = job.attempts.get()
    planned = {row.rank: row.node.name for row in attempt.allocations.select_related("node")}
    ordinal = "apps.kubernetes.io/pod-index"
    assert {int(pod["metadata"]["labels"][ordinal]): pod["spec"]["nodeName"] for pod in stage.pods()} == planned
    names = sorted(pod["metadata"]["name"] for pod in stage.pods())
    assert names == [f"{attempt.object_name}-{rank}" for rank in (0, 1)]
    [service] = stage.objects("services")
    assert service["metadata"]["name"] == attempt.object_name
    assert service["spec"]["clusterIP"] == "None"
    assert stage.held() == 16
    assert stage.objects() == []


def test_it_is_all_or_none_where_others_take_the_room(stage: Stage) -> None:
    blocker = stage.submit(workers=3)
    stage.until_state(blocker, State.RUNNING)
    job = stage.submit(**GANG)

    for _beat in range(10):
        stage.turn()
    job.refresh_from_db()

    assert (job.state, job.attempts.count()) == (State.QUEUED, 0)
    assert stage.objects("statefulsets") == []


def test_a_set_that_is_stopped_leaves_nothing_and_its_gpus_are_free_after_proof(stage: Stage) -> None:
    job = stage.submit(**GANG)
    stage.until_state(job, State.RUNNING)

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)

    assert stage.pods() == []
    assert stage.objects("statefulsets") == []
    assert stage.held() == 0


@pytest.mark.parametrize("kind", ["StatefulSet", "Service"])
def test_an_object_whose_creation_was_not_answered_is_adopted(stage: Stage, kind: str) -> None:
    job = stage.submit(**GANG)
    cycle.run_once()
    stage.simulated.control("POST", "/simulated/lose-reply", {"method": "POST", "kind": kind})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1
    assert len(stage.objects("statefulsets")) == 1


def test_a_pod_that_somebody_deletes_takes_its_gang_along(stage: Stage) -> None:
    job = stage.submit(**GANG)
    stage.until_state(job, State.RUNNING)
    first = {pod["metadata"]["uid"] for pod in stage.pods()}
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])

    stage.until(lambda: job.attempts.filter(number=2, step=Step.RUNNING).exists(), "the second attempt runs")

    assert first.isdisjoint(pod["metadata"]["uid"] for pod in stage.pods())
    assert len(stage.bound()) == 2
    assert stage.held() == 16


def test_a_rank_that_ends_too_often_gives_up_its_gang_with_its_exit_code(stage: Stage) -> None:
    fate = {"SIM_RUN_S_RANK": "1:15", "SIM_EXIT_CODE_RANK": "1:5"}
    job = stage.submit(**{**GANG, "env": fate}, backoff_limit=1)

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.outcome_rank, job.exit_code) == (Outcome.USER_ERROR, 1, 5)
    assert job.attempts.count() == 1
    assert stage.pods() == []
    assert stage.held() == 0


def test_a_quota_that_refuses_a_rank_is_told_in_its_own_words(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GATHER_S", 2.0)
    stage.create("resourcequotas", {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    job = stage.submit(**GANG)

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Outcome.REFUSED
    assert "exceeded quota: small" in job.outcome_message
    assert not stage.was_bound(job.attempts.get())


def test_a_set_that_somebody_deletes_starts_anew(stage: Stage) -> None:
    job = stage.submit(**GANG)
    stage.until_state(job, State.RUNNING)
    seen = ObservedObject.objects.filter(kind="StatefulSet", gone_at=None)
    stage.simulated.wait_for(seen.exists, "the mirror knows the set")

    stage.delete("statefulsets", job.attempts.get().object_name)
    stage.until(lambda: job.attempts.filter(number=2, step=Step.RUNNING).exists(), "the second attempt runs")

    assert stage.held() == 16
