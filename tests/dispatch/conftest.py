"""The stage of a test: a simulated cluster that is cleared after it, judged by its own watch."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from clusters.models import NodeAccelerator
from clusters.simulated.fleet import uniform
from portal.core import enqueue
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.dispatch.stage import Stage, set_stage, strike
from tests.watchlog import WatchLog

NODES = 4
CLOCK = 10
OWNERS = ("/apis/batch/v1/cronjobs", "/apis/batch/v1/jobs", "/apis/apps/v1/deployments", "/apis/apps/v1/statefulsets")


@pytest.fixture(scope="package")
def shared() -> Iterator[SimulatedCluster]:
    """Four nodes of eight GPUs in two racks, ten times as fast as the world."""
    with running_cluster(uniform(nodes=NODES, gpus=8, per_rack=2), clock=CLOCK) as cluster:
        yield cluster


@pytest.fixture
def simulated(shared: SimulatedCluster) -> Iterator[SimulatedCluster]:
    yield shared
    shared.control("POST", "/simulated/outage", {"seconds": 0})
    for number in range(NODES):
        shared.control("POST", f"/simulated/nodes/node-{number}/recover")
        shared.control("PUT", f"/simulated/nodes/node-{number}/gpus", {"allocatable": 8})
        merge = "application/merge-patch+json"
        shared.request("PATCH", f"/api/v1/nodes/node-{number}", {"spec": {"unschedulable": False}}, kind=merge)
    for path in (*OWNERS, "/api/v1/pods", "/api/v1/services", "/api/v1/resourcequotas"):
        for item in shared.request("GET", path)[1]["items"] or ():
            meta, (prefix, kind) = item["metadata"], path.rsplit("/", 1)
            one = f"{prefix}/namespaces/{meta['namespace']}/{kind}/{meta['name']}"
            shared.request("DELETE", one, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
    shared.wait_for(lambda: not shared.request("GET", "/api/v1/pods")[1]["items"], "all pods are gone")


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage beats by itself: hints have nobody to go to."""
    monkeypatch.setattr(enqueue, "send_once", lambda _task: True)


@pytest.fixture
def stage(simulated: SimulatedCluster, settings: Settings, transactional_db: None) -> Iterator[Stage]:
    settings.MUSTER_STALE_AFTER_S = 4.0
    log = WatchLog(simulated)
    made = set_stage(simulated, log)
    try:
        made.until(lambda: NodeAccelerator.objects.filter(allocatable=8).count() == NODES, "the nodes are known")
        yield made
    finally:
        strike(made)
    assert [violation for violation in log.stop() if violation.rule not in made.forgiven] == []
