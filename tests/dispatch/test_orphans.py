"""What carries our labels and belongs to nobody goes, after a grace; nothing else does."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from clusters.models import ObservedObject, ObservedPod
from jobs.dispatch import orphans
from jobs.models import Attempt, Job
from portal.core import clock
from tests.dispatch.stage import Stage

State = Job.State


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "GRACE", timedelta(0))


def labels(run: str = "stray", **others: str) -> dict[str, str]:
    domain = settings.MUSTER_DOMAIN
    mine = {"installation": settings.MUSTER_INSTALLATION, "run": run, "attempt": "1", **others}
    return {f"{domain}/{key}": value for key, value in mine.items()}


def stray_job(stage: Stage, name: str = "m-stray-a1", **given: Any) -> None:
    container = {"name": "main", "image": "example.org/train:1"}
    template = {"metadata": {"labels": given.get("labels", labels())}}
    spec = {"suspend": True, "template": {**template, "spec": {"restartPolicy": "Never", "containers": [container]}}}
    stage.create("jobs", {"metadata": {"name": name, "labels": labels(), **given}, "spec": spec})


def seen(stage: Stage, count: int = 1) -> None:
    rows = ObservedObject.objects.filter(gone_at=None)
    stage.simulated.wait_for(lambda: rows.count() >= count, "the mirror knows")


def test_an_object_of_no_attempt_is_deleted(stage: Stage) -> None:
    stray_job(stage)
    seen(stage)

    assert orphans.sweep() == 1

    stage.simulated.wait_for(lambda: not stage.objects(), "it is gone")


def test_nothing_is_deleted_within_the_grace(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "GRACE", timedelta(minutes=10))
    stray_job(stage)
    seen(stage)

    assert orphans.sweep() == 0
    # The cluster's own time counts as well: a row may be old and its name taken anew.
    ObservedObject.objects.update(seen_at=clock.now() - timedelta(hours=1))
    assert orphans.sweep() == 0
    assert len(stage.objects()) == 1


def test_what_another_installation_made_is_left_alone(stage: Stage) -> None:
    stray_job(stage, labels=labels(installation="another"))
    stray_job(stage, name="m-stray-a2")
    seen(stage)
    # Even if a row claims that it is ours.
    ObservedObject.objects.create(
        cluster=stage.cluster,
        kind="Job",
        uid=next(each for each in stage.objects() if each["metadata"]["name"] == "m-stray-a1")["metadata"]["uid"],
        namespace=stage.namespace,
        name="m-stray-a1",
        run="stray",
        attempt=1,
        resource_version="1",
        seen_at=clock.now() - timedelta(hours=1),
    )

    assert orphans.sweep() == 1

    stage.simulated.wait_for(lambda: len(stage.objects()) == 1, "ours is gone")
    assert stage.objects()[0]["metadata"]["name"] == "m-stray-a1"


def test_what_a_live_attempt_answers_for_is_left_alone(stage: Stage) -> None:
    job = stage.submit(workers=2)
    service = stage.serve(2)
    stage.until_state(job, State.RUNNING)
    stage.until_state(service, State.RUNNING)

    assert orphans.sweep() == 0
    assert len(stage.bound()) >= 3


def test_a_finished_job_keeps_its_pods_and_their_logs(stage: Stage) -> None:
    job = stage.submit(env={"SIM_RUN_S": "3"})
    stage.until_state(job, State.SUCCEEDED)

    assert orphans.sweep() == 0
    assert len(stage.pods()) == 1


def test_an_object_that_outlived_its_attempt_is_deleted(stage: Stage) -> None:
    """As when the answer to a create was lost, and the create itself was late."""
    job = stage.submit(workers=2)
    stage.until_state(job, State.RUNNING)
    Attempt.objects.update(step=Attempt.Step.ENDED, ended_at=clock.now())

    assert orphans.sweep() == 1

    stage.simulated.wait_for(lambda: not stage.pods(), "its pods are gone")


def test_pods_without_an_owner_are_deleted(stage: Stage) -> None:
    container = {"name": "main", "image": "example.org/train:1", "env": [{"name": "SIM_RUN_S", "value": "900"}]}
    body = {"metadata": {"name": "lost", "labels": labels()}, "spec": {"containers": [container]}}
    stage.create("pods", body)
    rows = ObservedPod.objects.filter(gone_at=None)
    stage.simulated.wait_for(rows.exists, "the mirror knows")

    assert orphans.sweep() == 1

    stage.simulated.wait_for(lambda: not stage.pods(), "it is gone")


def test_nothing_is_deleted_on_a_cluster_that_is_not_heard(stage: Stage) -> None:
    stray_job(stage)
    seen(stage)
    type(stage.cluster).objects.update(is_enabled=False)

    assert orphans.sweep() == 0
