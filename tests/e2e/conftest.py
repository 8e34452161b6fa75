"""One portal for all journeys, and the watch of its first cluster that judges every event."""

from collections.abc import Iterator

import pytest

from clusters.simulated.fleet import uniform
from tests.e2e.portal import RunningPortal, running_portal
from tests.watchlog import WatchLog

A100 = "NVIDIA-A100-SXM4-80GB"
CLOCK = 10


@pytest.fixture(scope="session")
def started() -> Iterator[RunningPortal]:
    """North: one rack of four H100 nodes. South: two A100 nodes. Ten times as fast as the world."""
    fleets = {"north": uniform(nodes=4, gpus=8, per_rack=4), "south": uniform(nodes=2, gpus=8, product=A100)}
    with running_portal(fleets, clock=CLOCK, default_run_s=100) as portal:
        yield portal


@pytest.fixture
def portal(started: RunningPortal) -> Iterator[RunningPortal]:
    """The portal, with no job under way; after the test no event may have broken an invariant."""
    logs = [WatchLog(cluster) for cluster in started.clusters.values()]
    yield started
    _stop_all(started)
    assert [log.stop() for log in logs] == [[], []]


def _stop_all(portal: RunningPortal) -> None:
    status, page = portal.api.ask("GET", "jobs/?team=vision")
    assert status == 200, page
    alive = [job["id"] for job in page["results"] if job["state"] not in ("succeeded", "failed", "cancelled")]
    for job_id in alive:
        portal.api.ask("POST", f"jobs/{job_id}/cancel/")
    for job_id in alive:
        portal.until_state(job_id, "cancelled", "succeeded", "failed")
    assert portal.held() == 0
