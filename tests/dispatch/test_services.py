"""Services: replicas come one by one, wait for a place, are replaced, grow and shrink."""

import pytest

from jobs.accounting import drift
from jobs.dispatch import limits
from jobs.models import Attempt, Job
from tests.dispatch.stage import Stage

State = Job.State


def ready(stage: Stage) -> int:
    """Replicas that serve, by the cluster itself."""
    conditions = [pod["status"].get("conditions") or [] for pod in stage.pods()]
    return sum({"type": "Ready", "status": "True"}.items() <= each.items() for many in conditions for each in many)


def test_a_service_starts_with_the_replicas_that_fit_and_the_rest_waits(stage: Stage) -> None:
    service = stage.serve(5, gpus_per_worker=8)

    stage.until_state(service, State.RUNNING)
    stage.until(lambda: ready(stage) == 4, "four replicas serve")
    stage.until(lambda: Job.objects.get(pk=service.pk).reason_code == "capacity", "the fifth says why it waits")

    gated = [pod for pod in stage.pods() if pod["spec"].get("schedulingGates")]
    assert len(gated) == 1
    assert stage.held() == 32


def test_a_waiting_replica_starts_when_there_is_room(stage: Stage) -> None:
    job = stage.submit(gpus_per_worker=8)
    stage.until_state(job, State.RUNNING)
    service = stage.serve(4, gpus_per_worker=8)
    stage.until(lambda: ready(stage) >= 3, "three replicas serve")

    stage.cancel(job)
    stage.until_state(job, State.CANCELLED)
    stage.until(lambda: ready(stage) == 4, "the fourth serves")

    service.refresh_from_db()
    assert service.reason_code == ""
    assert stage.held() == 32


def test_a_service_scales_up_and_down(stage: Stage) -> None:
    service = stage.serve(3)
    stage.until(lambda: ready(stage) == 3, "three replicas serve")

    stage.scale(service, 5)
    stage.until(lambda: ready(stage) == 5 and stage.held() == 5, "five replicas serve")
    stage.scale(service, 2)
    stage.until(lambda: len(stage.pods()) == 2 and stage.held() == 2, "two replicas are left")

    assert ready(stage) == 2
    assert service.attempts.count() == 1
    assert drift.findings() == []


def test_a_service_scaled_to_nothing_and_back_serves_again(stage: Stage) -> None:
    service = stage.serve(2)
    stage.until(lambda: ready(stage) == 2, "two replicas serve")

    stage.scale(service, 0)
    stage.until(lambda: not stage.pods() and stage.held() == 0, "nothing is left")
    stage.scale(service, 1)
    stage.until(lambda: ready(stage) == 1, "one replica serves")

    assert stage.held() == 1


def test_a_service_scaled_to_nothing_before_it_runs_is_up_with_nothing(stage: Stage) -> None:
    service = stage.serve(1, env={"SIM_NEVER_READY": "1"})
    stage.until_step(service, Attempt.Step.STARTING)

    stage.scale(service, 0)

    stage.until_state(service, State.RUNNING)
    assert stage.held() == 0


def test_a_service_tells_how_far_apart_its_replicas_are_as_they_come_and_go(stage: Stage) -> None:
    service = stage.serve(1, gpus_per_worker=8)
    stage.until(lambda: ready(stage) == 1, "one replica serves")
    assert service.attempts.get().level == "node"

    stage.scale(service, 2)
    stage.until(lambda: ready(stage) == 2, "two replicas serve")
    assert service.attempts.get().level == "cluster"  # spread over both racks

    stage.scale(service, 1)
    stage.until(lambda: len(stage.pods()) == 1 and stage.held() == 8, "one is left")
    assert service.attempts.get().level == "node"


def test_a_replica_that_somebody_deletes_is_replaced_and_placed_anew(stage: Stage) -> None:
    service = stage.serve(3)
    stage.until(lambda: ready(stage) == 3, "three replicas serve")
    first = stage.pods()[0]

    stage.delete("pods", first["metadata"]["name"])
    stage.until(
        lambda: ready(stage) == 3 and first["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in stage.pods()},
        "three replicas serve again",
    )
    stage.until(lambda: stage.held() == 3, "the place of the first was given back")

    assert service.attempts.count() == 1
    assert drift.findings() == []


def test_a_replica_that_cannot_be_bound_where_it_is_wanted_goes_elsewhere(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BIND_S", 2.0)
    service = stage.serve(1, gpus_per_worker=8)
    attempt = stage.until_step(service, Attempt.Step.STARTING)
    taken = attempt.allocations.get().node
    stage.foreign_pod(taken.name, gpus=8)

    stage.until(lambda: ready(stage) == 1, "the replica serves")

    assert taken.name not in stage.bound()
    stage.until(lambda: stage.held() == 8, "one place is held")


def test_a_deployment_that_somebody_deletes_comes_back(stage: Stage) -> None:
    service = stage.serve(2)
    stage.until(lambda: ready(stage) == 2, "two replicas serve")
    stage.delete("deployments", service.attempts.get().object_name)

    stage.until(lambda: service.attempts.filter(number=2).exists(), "a second attempt")
    stage.until(lambda: ready(stage) == 2, "two replicas serve again")

    assert stage.held() == 2


def test_a_service_that_is_stopped_leaves_nothing(stage: Stage) -> None:
    service = stage.serve(2)
    stage.until(lambda: ready(stage) == 2, "two replicas serve")

    stage.cancel(service)
    stage.until_state(service, State.CANCELLED)

    assert stage.pods() == []
    assert stage.objects("deployments") == []
    assert stage.objects("services") == []
    assert stage.held() == 0
