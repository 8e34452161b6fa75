"""A schedule on real Kubernetes: its controller makes the Jobs, and each waits in our queue for its place."""

from typing import Any

import pytest

from tests.e2e.portal import RunningPortal
from tests.e2e.test_journeys import NAMESPACE
from tests.kube.plane import ControlPlane
from tests.kube.test_dispatch import LONG, objects

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(420)]

RUNS_S = 90.0


def runs_of(portal: RunningPortal, schedule_id: str) -> list[dict[str, Any]]:
    """The runs of a schedule, the oldest first."""
    status, listed = portal.api.ask("GET", "jobs/?q=nightly")
    assert status == 200, listed
    return [job for job in reversed(listed["results"]) if job["parent"] == schedule_id]


def test_a_run_that_comes_due_waits_its_turn_is_pinned_charged_and_keeps_the_next_one_waiting(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    nodes = {"workers": 4, "gpus_per_worker": 8, "accelerators": ["h100"], "image": "example.org/t:1"}
    blocker = portal.api.submit({"name": "blocker", **nodes, **LONG})
    portal.until_state(blocker, "running")
    held = portal.held()
    document = {"name": "nightly", **nodes, "workload": "cronjob", "schedule": "* * * * *", **LONG}
    schedule_id = portal.api.submit(document)
    schedule = portal.until_state(schedule_id, "running")
    assert (len(schedule["next_times"]), schedule["gpus"], portal.held()) == (3, 0, held)

    (run,) = portal.wait_for(lambda: runs_of(portal, schedule_id), "its first run is queued", RUNS_S)
    assert run["state"] == "queued"
    (cron_job,) = objects(kube_plane, "CronJob", schedule_id)
    (job,) = objects(kube_plane, "Job", schedule_id)
    assert job["metadata"]["ownerReferences"][0]["uid"] == cron_job["metadata"]["uid"]
    assert job["spec"]["suspend"] is True
    assert objects(kube_plane, "Pod", schedule_id) == []

    portal.api.act(blocker, "cancel")
    portal.until_state(blocker, "cancelled")
    shown = portal.until_state(run["id"], "running")
    planned = {rank["rank"]: rank["node"] for rank in shown["placement"]["nodes"]}
    pods = objects(kube_plane, "Pod", run["id"])
    index = "batch.kubernetes.io/job-completion-index"
    assert {int(pod["metadata"]["labels"][index]): pod["spec"]["nodeName"] for pod in pods} == planned
    assert {pod["spec"]["subdomain"] for pod in pods} == {cron_job["metadata"]["name"]}
    (taken,) = objects(kube_plane, "Job", run["id"])
    assert (taken["metadata"]["uid"], shown["attempts"][0]["object_name"]) == (
        job["metadata"]["uid"],
        job["metadata"]["name"],
    )
    assert portal.held() == 32

    def came_due_again() -> bool:
        (seen,) = objects(kube_plane, "CronJob", schedule_id)
        events = kube_plane.admin.items("Event", NAMESPACE)
        told = {event["reason"] for event in events if event["involvedObject"].get("uid") == seen["metadata"]["uid"]}
        return "JobAlreadyActive" in told

    portal.wait_for(came_due_again, "the next one comes due and is held back", RUNS_S)
    assert len(runs_of(portal, schedule_id)) == 1

    portal.api.act(schedule_id, "cancel")
    portal.until_state(schedule_id, "cancelled")
    assert objects(kube_plane, "CronJob", schedule_id) == []
    assert portal.api.job(run["id"])["state"] == "running"
    portal.api.act(run["id"], "cancel")
    portal.until_state(run["id"], "cancelled")
    assert (objects(kube_plane, "Job", run["id"]), portal.held()) == ([], 0)
