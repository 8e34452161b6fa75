"""Against a running API server: what happens there is in the rows soon, whatever breaks between."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connections
from pytest_django import Settings

from clusters.models import Cluster, Node, NodeAccelerator, NodeEvent, ObservedObject, ObservedPod
from clusters.selectors.capacity import stale_cluster_ids
from clusters.simulated.fleet import uniform
from clusters.watch.hints import Hints
from clusters.watch.process import WatchProcess
from portal.core import clock
from portal.core.models import Heartbeat
from tests.clusters.documents import DOMAIN, PRODUCT
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.factories import make_cluster, make_flavor

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = "/apis/batch/v1/namespaces/default/jobs"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
PODS = "/api/v1/namespaces/default/pods"
LABELS = {f"{DOMAIN}/installation": "default", f"{DOMAIN}/run": "r1", f"{DOMAIN}/attempt": "1"}


@pytest.fixture(scope="module")
def shared() -> Iterator[SimulatedCluster]:
    with running_cluster(uniform(nodes=3, gpus=8), clock=10, default_run_s=100_000) as cluster:
        yield cluster


@pytest.fixture
def simulated(shared: SimulatedCluster) -> Iterator[SimulatedCluster]:
    """The cluster that the tests of this file share, cleared after each of them."""
    yield shared
    shared.control("POST", "/simulated/outage", {"seconds": 0})
    for path in (JOBS, PODS, QUOTAS):
        for item in shared.request("GET", path)[1]["items"] or ():
            options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
            shared.request("DELETE", f"{path}/{item['metadata']['name']}", options)
    shared.wait_for(lambda: not shared.request("GET", PODS)[1]["items"], "all pods are gone")


@pytest.fixture
def cluster(simulated: SimulatedCluster) -> Cluster:
    make_flavor("h100", label_value=PRODUCT)
    return registered(simulated)


@pytest.fixture
def asked() -> list[str]:
    """The tasks that the watch process asked for."""
    return []


@pytest.fixture
def watch(asked: list[str]) -> Iterator[Callable[..., None]]:
    """Start a watch process in a thread; it has to end within two seconds."""
    ends: list[Callable[[], None]] = []

    def start(*names: str) -> None:
        stopping = threading.Event()
        process = WatchProcess(names, hints=Hints(asked.append))
        thread = threading.Thread(target=_run, args=(process, stopping))
        thread.start()

        def end() -> None:
            started = time.monotonic()
            stopping.set()
            thread.join(10)
            assert time.monotonic() - started < 2.0

        ends.append(end)

    yield start
    for end in ends:
        end()


def _run(process: WatchProcess, stopping: threading.Event) -> None:
    try:
        process.run(stopping)
    finally:
        connections.close_all()


def registered(simulated: SimulatedCluster, name: str = "north") -> Cluster:
    return make_cluster(name, server=simulated.url, token=simulated.token, heard_at=None, synced_at=None)


def create_pod(simulated: SimulatedCluster, name: str, **labels: str) -> None:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    create(simulated, PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})


def create_job(simulated: SimulatedCluster, name: str, *, seconds: int = 1_000, **spec: object) -> None:
    container = {
        "name": "main",
        "image": "a:1",
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
        "env": [{"name": "SIM_RUN_S", "value": str(seconds)}],
    }
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    body = {"metadata": {"name": name, "labels": LABELS}, "spec": {"template": template, **spec}}
    create(simulated, JOBS, body)


def create(simulated: SimulatedCluster, path: str, body: dict[str, object]) -> None:
    status, answer = simulated.request("POST", path, body)
    assert status == 201, answer


def eventually(probe: Callable[[], object], within_s: float = 15.0) -> None:
    deadline = time.monotonic() + within_s
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_fresh(cluster: Cluster) -> bool:
    return cluster.pk not in stale_cluster_ids(clock.now())


def present(name: str) -> bool:
    return ObservedPod.objects.filter(name=name, gone_at=None).exists()


def test_nodes_pods_and_foreign_usage_are_in_the_rows_within_a_second(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None], asked: list[str]
) -> None:
    create_pod(simulated, "foreign")
    watch()
    eventually(lambda: is_fresh(cluster))

    assert Node.objects.filter(is_ready=True).count() == 3
    asked.clear()
    create_pod(simulated, "ours", **LABELS)
    eventually(lambda: present("ours"), within_s=1.5)
    eventually(lambda: "jobs.tasks.reconcile" in asked)
    eventually(lambda: ObservedPod.objects.filter(name="ours", phase="Running", gpus=2).exists())
    eventually(lambda: sum(NodeAccelerator.objects.values_list("foreign", flat=True)) == 2)
    simulated.request("DELETE", f"{PODS}/ours")
    eventually(lambda: not present("ours"))

    cluster.refresh_from_db()
    assert cluster.kubernetes_version.startswith("v1.")
    assert cluster.last_error == ""
    assert Heartbeat.objects.get(process="watch").detail == {"clusters": 1}


def test_a_quiet_cluster_stays_fresh_and_costs_no_writes_of_rows(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None], settings: Settings
) -> None:
    settings.MUSTER_STALE_AFTER_S = 2.0
    create_pod(simulated, "ours", **LABELS)
    watch()
    eventually(lambda: ObservedPod.objects.filter(phase="Running").exists())
    seen_at = ObservedPod.objects.get().seen_at

    time.sleep(3)

    assert is_fresh(cluster)
    assert ObservedPod.objects.get().seen_at == seen_at
    assert set(NodeEvent.objects.values_list("kind", flat=True)) == {"registered"}


def test_an_outage_makes_the_cluster_stale_and_nothing_is_taken_for_gone(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None], settings: Settings
) -> None:
    settings.MUSTER_STALE_AFTER_S = 1.0
    create_pod(simulated, "ours", **LABELS)
    watch()
    eventually(lambda: present("ours") and is_fresh(cluster))

    simulated.control("POST", "/simulated/outage", {"seconds": 4})
    eventually(lambda: not is_fresh(cluster), within_s=4)

    assert present("ours")
    assert Node.objects.filter(gone_at=None).count() == 3
    eventually(lambda: Cluster.objects.exclude(last_error="").exists())
    eventually(lambda: is_fresh(cluster))
    assert present("ours")
    # Claims are not essential: the cluster counts as heard before their stream is back.
    eventually(lambda: Cluster.objects.get().last_error == "")


@pytest.mark.parametrize("by_status", [True, False])
def test_what_happened_while_the_past_was_lost_is_found_by_a_new_list(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None], by_status: bool
) -> None:
    create_pod(simulated, "stays", **LABELS)
    create_job(simulated, "m-r1-a1", seconds=25, ttlSecondsAfterFinished=0)
    watch()
    eventually(lambda: ObservedPod.objects.filter(gone_at=None, phase="Running").count() == 2)

    # The Job ends and takes its pod along while nobody can look, and then nobody remembers it.
    simulated.control("POST", "/simulated/outage", {"seconds": 4})
    time.sleep(3)
    simulated.control("POST", "/simulated/compact", {"by_status": by_status})

    eventually(lambda: ObservedPod.objects.filter(gone_at=None).count() == 1)
    eventually(lambda: ObservedObject.objects.get().gone_at)
    assert present("stays")


def test_ten_lost_pasts_in_a_row_do_not_end_the_watch(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    watch()
    eventually(lambda: is_fresh(cluster))
    for number in range(10):
        simulated.control("POST", "/simulated/compact")
        simulated.control("POST", "/simulated/outage", {"seconds": 0.05})
        time.sleep(0.1)
        if number % 3 == 0:
            create_pod(simulated, f"p{number}", **LABELS)

    eventually(lambda: all(present(f"p{number}") for number in (0, 3, 6, 9)))


def test_the_timeline_tells_what_befell_a_node(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    watch()
    eventually(lambda: is_fresh(cluster))

    simulated.control("PUT", "/simulated/nodes/node-1/gpus", {"allocatable": 7})
    eventually(lambda: NodeAccelerator.objects.filter(node__name="node-1", allocatable=7).exists())
    simulated.request(
        "PATCH", "/api/v1/nodes/node-1", {"spec": {"unschedulable": True}}, kind="application/merge-patch+json"
    )
    eventually(lambda: Node.objects.filter(name="node-1", is_cordoned=True).exists())
    node = simulated.request("DELETE", "/api/v1/nodes/node-1")[1]
    eventually(lambda: Node.objects.get(name="node-1").gone_at)
    metadata = {"name": "node-1", "labels": node["metadata"]["labels"]}
    create(simulated, "/api/v1/nodes", {"metadata": metadata, "status": node["status"]})
    eventually(lambda: Node.objects.get(name="node-1").gone_at is None)

    kinds = NodeEvent.objects.filter(node__name="node-1").order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["registered", "device_lost", "cordoned", "gone", "returned", "uncordoned"]


def test_a_job_whose_pods_are_refused_carries_the_reason(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    watch()
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    create(simulated, QUOTAS, quota)
    create_job(simulated, "m-r1-a1")

    eventually(lambda: ObservedObject.objects.filter(warning__contains="exceeded quota").exists())
    assert ObservedObject.objects.get().kind == "Job"


def test_a_hanging_cluster_does_not_slow_another(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    with running_cluster(uniform(nodes=1, gpus=8), clock=10) as hanging:
        slow = registered(hanging, "south")
        hanging.control("PUT", "/simulated/latency", {"seconds": 30})
        watch()
        eventually(lambda: is_fresh(cluster), within_s=5)
        create_pod(simulated, "ours", **LABELS)

        eventually(lambda: present("ours"), within_s=1.5)
        assert not is_fresh(slow)


def test_clusters_join_and_leave_a_running_process(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    Cluster.objects.update(is_enabled=False)
    watch()
    time.sleep(0.5)
    assert Node.objects.count() == 0

    Cluster.objects.update(is_enabled=True)
    eventually(lambda: Node.objects.count() == 3)
    eventually(lambda: Heartbeat.objects.get(process="watch").detail == {"clusters": 1})
    Cluster.objects.update(is_enabled=False)
    eventually(lambda: Heartbeat.objects.get(process="watch").detail == {"clusters": 0}, within_s=10)
    create_pod(simulated, "unseen", **LABELS)
    time.sleep(0.5)

    assert not present("unseen")


def test_only_the_named_clusters_are_watched(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    registered(simulated, "south")
    watch("south")

    eventually(lambda: Node.objects.filter(cluster__name="south").count() == 3)

    assert not Node.objects.filter(cluster__name="north").exists()


def test_a_database_that_drops_its_connections_costs_no_event(
    simulated: SimulatedCluster, cluster: Cluster, watch: Callable[..., None]
) -> None:
    watch()
    eventually(lambda: is_fresh(cluster))
    with connections["default"].cursor() as cursor:
        for number in range(5):
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            create_pod(simulated, f"p{number}", **LABELS)
            time.sleep(0.1)

    eventually(lambda: all(present(f"p{number}") for number in range(5)))
