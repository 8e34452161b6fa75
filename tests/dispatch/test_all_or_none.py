"""Gangs that compete, end in parts, or come again under their old name: whole or gone, and nobody waits for ever."""

import threading
from collections import defaultdict

import pytest
from django.db import connection

from clusters.models import ObservedPod
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock
from portal.core.errors import DomainError
from tests.dispatch.stage import Stage

State = Job.State
RUN = "muster.internal/run"


def test_two_gangs_that_each_need_the_whole_cluster_never_stand_there_both(stage: Stage) -> None:
    """Submitted in the same second, while two schedulers run a cycle at the same moment, again and again."""
    first, second = (stage.submit(workers=4, env={"SIM_RUN_S": "10"}) for _ in range(2))

    def ended() -> bool:
        _at_once(2)
        return Job.objects.filter(state=State.SUCCEEDED).count() == 2

    stage.until(ended, "both have run")

    bound: dict[str, set[str]] = defaultdict(set)
    for kind, change, body in stage.log.events:
        run = (body["metadata"].get("labels") or {}).get(RUN) if kind == "pods" else None
        if run is None:
            continue
        is_there = change != "DELETED" and body["spec"].get("nodeName")
        alive = is_there and body["status"]["phase"] not in ("Succeeded", "Failed")
        (bound[run].add if alive else bound[run].discard)(body["metadata"]["uid"])
        assert not (bound[first.uid] and bound[second.uid]), "pods of both are bound"
    assert [job.attempts.count() for job in (first, second)] == [1, 1]


def test_the_second_gang_starts_within_two_cycles_of_the_end_of_the_first(stage: Stage) -> None:
    first = stage.submit(workers=4)
    second = stage.submit(workers=4)
    stage.until_state(first, State.RUNNING)
    stage.cancel(first)
    stage.until_state(first, State.CANCELLED)

    for _ in range(2):
        cycle.run_once()

    second.refresh_from_db()
    assert second.state == State.ADMITTED


def test_a_gang_of_which_one_rank_has_succeeded_and_one_fails_is_tried_again_whole_and_comes_to_an_end(
    stage: Stage,
) -> None:
    fate = {"SIM_RUN_S": "600", "SIM_RUN_S_RANK": "0:1,1:20", "SIM_EXIT_CODE_RANK": "1:1"}
    job = stage.submit(workers=3, gpus_per_worker=1, backoff_limit=2, env=fate)

    stage.until_state(job, State.FAILED, timeout_s=90)

    assert job.attempts.count() == 3
    for attempt in job.attempts.all():
        ranks = {pod.rank for pod in ObservedPod.objects.filter(run=job.uid, attempt=attempt.number)}
        assert ranks == {0, 1, 2}
    assert (job.outcome_rank, job.exit_code) == (1, 1)
    assert stage.held() == 0


@pytest.mark.parametrize("size", [4, 0, 11])
def test_a_run_whose_pods_have_partly_ended_is_not_resized_and_ends_as_ever(stage: Stage, size: int) -> None:
    """An edit that the cluster could never accept would keep its GPUs for ever."""
    fate = {"SIM_RUN_S": "30", "SIM_RUN_S_RANK": "0:1,1:1"}
    job = stage.submit(workers=4, gpus_per_worker=1, env=fate)
    stage.until(
        lambda: ObservedPod.objects.filter(run=job.uid, phase="Succeeded").count() == 2,
        "two ranks have ended",
    )

    with pytest.raises(DomainError) as refused:
        stage.scale(job, size)
    assert refused.value.code == "not_a_service"
    stage.until_state(job, State.SUCCEEDED)

    assert stage.held() == 0


def test_a_run_that_comes_again_under_its_name_has_nothing_of_the_one_that_failed(stage: Stage) -> None:
    failed = stage.submit(gpus_per_worker=1, backoff_limit=0, env={"SIM_RUN_S": "1", "SIM_EXIT_CODE": "1"})
    stage.until_state(failed, State.FAILED)
    (left,) = stage.pods()
    assert left["status"]["phase"] == "Failed"

    again = stage.submit(gpus_per_worker=1)
    stage.until_state(again, State.RUNNING)

    assert (failed.name, again.name) == ("train", "train")
    assert again.attempts.get().object_name != failed.attempts.get().object_name
    mine = ObservedPod.objects.filter(run=again.uid)
    assert left["metadata"]["uid"] not in mine.values_list("uid", flat=True)
    assert stage.held() == 1
    # The cluster goes on telling of the dead pod: that is news of the old run alone.
    note = {"metadata": {"annotations": {"example.org/late": "true"}}}
    stage.patch("pods", left["metadata"]["name"], note)
    for _ in range(5):
        stage.turn()
    again.refresh_from_db()
    assert again.state == State.RUNNING


def test_a_run_that_comes_again_while_the_pods_of_the_old_one_still_stop_waits_for_their_gpus(stage: Stage) -> None:
    slow = stage.submit(workers=4, env={"SIM_RUN_S": "600", "SIM_STOP_S": "30"})
    stage.until_state(slow, State.RUNNING)
    stage.cancel(slow)
    stage.until_state(slow, State.STOPPING)

    again = stage.submit(workers=4, env={"SIM_RUN_S": "600"})
    for _ in range(5):
        stage.turn()
    again.refresh_from_db()
    assert again.state == State.QUEUED
    assert again.reason_code
    assert stage.held() == 32
    stage.until_state(again, State.RUNNING)

    slow.refresh_from_db()
    assert slow.state == State.CANCELLED
    assert again.attempts.get().started_at is not None
    assert slow.attempts.get().ended_at <= clock.now()  # type: ignore[operator]
    assert stage.held() == 32


def test_the_longest_names_that_are_taken_give_each_rank_its_own_pod_and_host(stage: Stage) -> None:
    """Equal in all but their last letter, forty characters each."""
    jobs = [stage.submit(name="n" * 39 + end, workers=2, gpus_per_worker=8) for end in ("a", "b")]
    for job in jobs:
        stage.until_state(job, State.RUNNING)

    names = [pod["metadata"]["name"] for pod in stage.pods()]
    hosts = [f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in stage.pods()]
    assert len(set(names)) == 4
    assert len(set(hosts)) == 4
    labels = [value for pod in stage.pods() for value in pod["metadata"]["labels"].values()]
    assert max(map(len, [*names, *labels, *(pod["spec"]["hostname"] for pod in stage.pods())])) <= 63
    services = {service["metadata"]["name"] for service in stage.objects("services")}
    assert services == {attempt.object_name for attempt in Attempt.objects.all()}


def _at_once(many: int) -> None:
    threads = [threading.Thread(target=_cycle) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _cycle() -> None:
    try:
        cycle.run_once()
    finally:
        connection.close()
