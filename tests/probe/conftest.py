"""One simulated cluster per module, every switch of it reset after each test."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from clusters.k8s.gateway import Gateway
from clusters.models import Cluster
from clusters.probe.round import Round
from clusters.simulated.fleet import uniform
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.factories import make_cluster

NAMESPACES = ("vision", "speech")


@pytest.fixture(scope="module")
def running() -> Iterator[SimulatedCluster]:
    """Three nodes of eight GPUs, and the namespaces of both teams."""
    fleet = {**uniform(nodes=3, gpus=8), "namespaces": NAMESPACES}
    with running_cluster(fleet, clock=10) as cluster:
        yield cluster


@pytest.fixture
def simulated(running: SimulatedCluster) -> Iterator[SimulatedCluster]:
    """The cluster, and afterwards as it was."""
    yield running
    running.control("PUT", "/simulated/rights", {"denied": []})
    running.control("PUT", "/simulated/clock", {"ahead": 0})
    running.control("POST", "/simulated/outage", {"seconds": 0})
    for namespace in NAMESPACES:
        for path in (f"/api/v1/namespaces/{namespace}/resourcequotas", jobs(namespace)):
            for item in running.request("GET", path)[1]["items"] or ():
                running.request("DELETE", f"{path}/{item['metadata']['name']}", {"propagationPolicy": "Background"})


@pytest.fixture
def cluster(simulated: SimulatedCluster) -> Cluster:
    """Its row."""
    return make_cluster("north", server=simulated.url, token=simulated.token)


def jobs(namespace: str) -> str:
    """The path of a namespace's Jobs."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def round_of(cluster: Cluster) -> Round:
    """A round over a gateway of its own, with a clock that really waits."""
    return Round(cluster, Gateway(cluster), _wait)


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def found(cluster: Cluster) -> dict[str, tuple[str, Any]]:
    """Severity and numbers of each finding in the rows."""
    return {row.code: (row.severity, row.numbers) for row in cluster.findings.all()}
