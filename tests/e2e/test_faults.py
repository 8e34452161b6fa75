"""Worker, database and clusters fail in the middle of things: nothing is lost, nothing doubled."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.portal import RunningPortal
from tests.e2e.test_journeys import GANG, bound_nodes, objects

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(240)]

H100 = {**GANG, "accelerators": ["h100"]}


def started(portal: RunningPortal, job_id: str) -> Any:
    """The step of the newest attempt, once there is one."""
    attempts = portal.api.job(job_id)["attempts"]
    return attempts[0]["step"] if attempts else None


def test_a_worker_killed_in_the_middle_of_a_dispatch_is_replaced(portal: RunningPortal) -> None:
    jobs = [portal.api.submit({**H100, "workers": 2, "gpus_per_worker": 4}) for _ in range(4)]
    portal.wait_for(lambda: any(started(portal, job) for job in jobs), "a dispatch is under way")
    portal.kill("worker")
    portal.launch("worker")

    for job_id in jobs:
        job = portal.until_state(job_id, "succeeded", timeout_s=90)
        assert job["attempt"] == 1
        assert len(objects(portal, "north", "jobs", job_id)) == 1
    assert portal.held() == 0
    assert portal.doctor() == []


@pytest.mark.parametrize("end", [RunningPortal.halt, RunningPortal.kill], ids=["stopped", "killed"])
def test_without_a_worker_nothing_starts_and_one_message_waits(
    portal: RunningPortal, end: Callable[[RunningPortal, str], None]
) -> None:
    end(portal, "worker")
    try:
        job_id = portal.api.submit({**H100, "workers": 1})
        time.sleep(8)  # sixteen beats

        assert portal.api.job(job_id)["state"] == "queued"
        assert objects(portal, "north", "jobs", job_id) == []
        ((cycles, passes),) = portal.rows(
            "SELECT (SELECT count(*) FROM pgmq.q_cycle), (SELECT count(*) FROM pgmq.q_reconcile)"
        )
        assert cycles <= 1
        assert passes <= 1
    finally:
        portal.launch("worker")  # for the tests that follow too
    portal.until_state(job_id, "running", "succeeded")


def test_a_restart_of_the_database_loses_nothing(portal: RunningPortal) -> None:
    before = portal.api.submit({**H100, "workers": 2, "env": {"SIM_RUN_S": "150"}})
    portal.until_state(before, "running")

    portal.restart_postgres()
    # Connections that were open before are found broken before they are used: nobody sees an error.
    assert {portal.api.ask("GET", "jobs/?team=vision")[0] for _ in range(20)} == {200}
    after = portal.wait_for(lambda: _submitted(portal), "the portal takes jobs again")

    portal.until_state(after, "succeeded")
    job = portal.until_state(before, "succeeded")
    assert job["attempt"] == 1
    assert portal.held() == 0
    for name, process in portal.processes.items():
        assert process.poll() is None, f"{name} has ended"


def _submitted(portal: RunningPortal) -> str | None:
    status, answer = portal.api.ask("POST", "jobs/?team=vision", {**H100, "workers": 1})
    return str(answer["id"]) if status == 201 else None


def test_an_outage_of_one_cluster_is_told_and_heals(portal: RunningPortal) -> None:
    running = portal.api.submit({**H100, "workers": 2, "env": {"SIM_RUN_S": "100"}})
    portal.until_state(running, "running")
    portal.clusters["north"].control("POST", "/simulated/outage", {"seconds": 12})

    portal.wait_for(lambda: portal.api.job(running)["cluster_stale"], "the job's cluster is stale")
    waits = portal.api.submit({**H100, "workers": 1})
    elsewhere = portal.api.submit({**GANG, "workers": 1, "accelerators": ["a100"]})
    portal.until_state(elsewhere, "running", "succeeded")
    assert portal.api.job(running)["state"] == "running"
    assert portal.api.job(waits)["state"] == "queued"

    job = portal.until_state(running, "succeeded")
    assert (job["attempt"], job["cluster_stale"]) == (1, False)
    assert len(objects(portal, "north", "jobs", running)) == 1
    portal.until_state(waits, "succeeded")
    assert bound_nodes(portal, "north", running) == []
    assert portal.doctor() == []
