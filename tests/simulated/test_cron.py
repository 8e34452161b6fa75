"""CronJobs: Jobs when they come due, the list of those under way, overlap, history. Times are those on the wall."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.clusters_running import MERGE_PATCH
from tests.simulated.conftest import Corner, pod_spec

pytestmark = pytest.mark.timeout(60)
FAR = "0 0 1 1 *"


def cron_job(schedule: str = "* * * * *", **spec: Any) -> dict[str, Any]:
    template = {"spec": {**pod_spec(), "restartPolicy": "Never"}}
    job = {"suspend": True, "template": template}
    return {"metadata": {"name": "often"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": job}, **spec}}


def miss(corner: Corner, minutes: int = 3) -> None:
    """Let it believe that it made its last Job some minutes ago."""
    moment = (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"status": {"lastScheduleTime": moment}}
    code, answer = corner.cluster.request("PATCH", corner.path("cronjobs", "often/status"), status, kind=MERGE_PATCH)
    assert code == 200, answer


def wait_jobs(corner: Corner, count: int) -> list[dict[str, Any]]:
    def probe() -> list[dict[str, Any]]:
        found = corner.items("jobs")
        return found if len(found) == count else []

    return corner.cluster.wait_for(probe, f"{count} jobs")


def end(corner: Corner, name: str) -> None:
    """Report that the Job has succeeded."""
    done = [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    status = {"status": {"conditions": done, "completionTime": "2026-01-01T00:00:00Z"}}
    code, answer = corner.cluster.request("PATCH", corner.path("jobs", f"{name}/status"), status, kind=MERGE_PATCH)
    assert code == 200, answer


def test_what_was_missed_is_made_once_for_the_last_time_that_came_due(corner: Corner) -> None:
    made = corner.create("cronjobs", cron_job())
    miss(corner)

    [job] = wait_jobs(corner, 1)
    due = int(job["metadata"]["name"].removeprefix("often-")) * 60
    assert 0 <= time.time() - due < 120
    assert job["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    status = corner.get("cronjobs", "often")["status"]
    assert [each["uid"] for each in status["active"]] == [job["metadata"]["uid"]]
    assert datetime.fromisoformat(status["lastScheduleTime"]).timestamp() == due


def test_nothing_is_made_while_it_is_suspended_or_too_late(corner: Corner) -> None:
    corner.create("cronjobs", cron_job(suspend=True))
    miss(corner)
    late = cron_job(FAR, startingDeadlineSeconds=60)
    late["metadata"]["name"] = "late"
    corner.create("cronjobs", late)
    time.sleep(0.5)

    assert corner.items("jobs") == []


@pytest.mark.parametrize(("policy", "count"), [("Forbid", 1), ("Allow", 2)])
def test_a_second_one_is_held_back_or_comes_beside(corner: Corner, policy: str, count: int) -> None:
    corner.create("cronjobs", cron_job(concurrencyPolicy=policy))
    miss(corner)
    [job] = wait_jobs(corner, 1)
    # The same minute has a Job already: rename the time that came due by another text.
    hour = (datetime.now(UTC) - timedelta(minutes=7)).minute
    corner.patch("cronjobs", "often", [{"op": "replace", "path": "/spec/schedule", "value": f"{hour} * * * *"}])
    miss(corner, 10)

    if count == 1:
        corner.cluster.wait_for(lambda: corner.events("JobAlreadyActive"), "it is held back")
        end(corner, job["metadata"]["name"])
    wait_jobs(corner, 2)


def test_a_new_one_takes_the_place_of_the_one_before(corner: Corner) -> None:
    corner.create("cronjobs", cron_job(concurrencyPolicy="Replace"))
    miss(corner)
    [first] = wait_jobs(corner, 1)
    hour = (datetime.now(UTC) - timedelta(minutes=7)).minute
    corner.patch("cronjobs", "often", [{"op": "replace", "path": "/spec/schedule", "value": f"{hour} * * * *"}])
    miss(corner, 10)

    def replaced() -> bool:
        uids = [job["metadata"]["uid"] for job in corner.items("jobs")]
        return len(uids) == 1 and uids[0] != first["metadata"]["uid"]

    corner.cluster.wait_for(replaced, "another one alone")


def test_ended_ones_are_kept_up_to_the_limit(corner: Corner) -> None:
    corner.create("cronjobs", cron_job(concurrencyPolicy="Allow", successfulJobsHistoryLimit=1))
    miss(corner)
    [first] = wait_jobs(corner, 1)
    end(corner, first["metadata"]["name"])
    corner.cluster.wait_for(lambda: corner.events("SawCompletedJob"), "its end is seen")
    hour = (datetime.now(UTC) - timedelta(minutes=7)).minute
    corner.patch("cronjobs", "often", [{"op": "replace", "path": "/spec/schedule", "value": f"{hour} * * * *"}])
    miss(corner, 10)
    for job in wait_jobs(corner, 2):
        end(corner, job["metadata"]["name"])

    wait_jobs(corner, 1)


def test_deleted_by_itself_it_leaves_its_jobs_alone(corner: Corner) -> None:
    corner.create("cronjobs", cron_job())
    miss(corner)
    wait_jobs(corner, 1)

    corner.cluster.request("DELETE", corner.path("cronjobs", "often"), {"propagationPolicy": "Orphan"})

    corner.cluster.wait_for(
        lambda: "ownerReferences" not in corner.items("jobs")[0]["metadata"], "the Job stands alone"
    )
    assert corner.items("cronjobs") == []
