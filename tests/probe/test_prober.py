"""The watch process makes the checks by itself, and a person's wish reaches it."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connections

from clusters.models import Cluster, Node
from clusters.services.findings import ask_for_checks
from clusters.simulated.fleet import uniform
from clusters.watch.hints import Hints
from clusters.watch.process import WatchProcess
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.identity.models import Team
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.factories import make_cluster
from tests.probe.conftest import found

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(90)]


@pytest.fixture
def watch() -> Iterator[Callable[[], None]]:
    """Start a watch process in a thread; it has to end within two seconds."""
    stopping = threading.Event()
    threads: list[threading.Thread] = []

    def run() -> None:
        try:
            WatchProcess(hints=Hints(lambda _task: None)).run(stopping)
        finally:
            connections.close_all()

    def start() -> None:
        threads.append(threading.Thread(target=run))
        threads[0].start()

    yield start
    began = time.monotonic()
    stopping.set()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - began < 2.5


def eventually(probe: Callable[[], object], within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not probe():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def probed(cluster: Cluster) -> bool:
    return Cluster.objects.get(pk=cluster.pk).probed_at is not None


def test_the_checks_are_made_at_the_start_with_the_nodes_that_are_there(
    simulated: SimulatedCluster, cluster: Cluster, team: Team, watch: Callable[[], None]
) -> None:
    watch()
    eventually(lambda: probed(cluster))

    assert Node.objects.first().extended == {"nvidia.com/gpu": 8}  # type: ignore[union-attr]
    findings = found(cluster)
    assert findings["accelerators"][1]["kinds"] == [["nvidia.com/gpu", "NVIDIA-H100-80GB-HBM3", 3]]
    assert findings["taint"][1] == {"nodes": 3, "tainted": 0, "key": "muster.internal/dedicated"}
    assert findings["canary"][1]["is"] == "ok"


def test_a_wish_is_met_once(simulated: SimulatedCluster, cluster: Cluster, watch: Callable[[], None]) -> None:
    watch()
    eventually(lambda: probed(cluster))
    Cluster.objects.update(probed_at=None)
    time.sleep(3)
    assert not probed(cluster)
    simulated.control("PUT", "/simulated/clock", {"ahead": 60})

    ask_for_checks(actor=SYSTEM, cluster=cluster)

    eventually(lambda: probed(cluster), within_s=8)
    assert found(cluster)["clock"][0] == "warning"
    Cluster.objects.update(probed_at=None)
    time.sleep(3)
    assert not probed(cluster)


def test_a_hanging_cluster_holds_up_no_other_and_no_mirror(
    simulated: SimulatedCluster, cluster: Cluster, team: Team, watch: Callable[[], None]
) -> None:
    with running_cluster(uniform(nodes=1, gpus=8), clock=10) as hanging:
        slow = make_cluster("slow", server=hanging.url, token=hanging.token, heard_at=None, synced_at=None)
        hanging.control("PUT", "/simulated/latency", {"seconds": 30})
        watch()
        eventually(lambda: probed(cluster), within_s=12)

        assert Node.objects.filter(cluster=cluster).count() == 3
        assert not probed(slow)


def test_a_cluster_whose_nodes_we_may_not_list_is_checked_all_the_same(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusters.watch.prober.FIRST_WAIT_S", 1.0)
    simulated.control("PUT", "/simulated/rights", {"denied": [{"resource": "nodes"}]})
    watch()
    eventually(lambda: probed(cluster))

    assert found(cluster)["rights"][1]["missing"][0][2] == "nodes"
    assert found(cluster)["accelerators"] == ("unknown", {})
    simulated.control("PUT", "/simulated/rights", {"denied": []})
    eventually(lambda: found(cluster)["rights"][0] == "ok")
    assert found(cluster)["accelerators"][0] == "warning"
    assert clock.now() >= Cluster.objects.get().probed_at  # type: ignore[operator]
