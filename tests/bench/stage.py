"""A real control plane and a portal of real processes that knows it, and what both are asked to start on it."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.manifests import gang, rights
from clusters.manifests.adapters import born_pinned
from clusters.manifests.values import ContainerValues, GangValues, Identity, Json, PodValues
from tests.bench.tape import DOMAIN, Tape
from tests.e2e.portal import RunningPortal, running_portal
from tests.kube.admin import path_of
from tests.kube.fleet import LEVELS as TOPOLOGY
from tests.kube.plane import ControlPlane, running_plane

NAMESPACE = "team-vision"
# As they are by default, not as tests have them.
SETTINGS = {"MUSTER_BEAT_S": "2", "MUSTER_STALE_AFTER_S": "15"}
RUN = {"SIM_RUN_S": "3600"}
PARALLEL = 12
# From so many jobs on they are sent as lists of so many.
LISTED, LIST = 500, 50
PATIENCE_S = 240.0
SETTLE_S = 1.0
# The portal as if nothing had ever been asked of it.
EMPTY = (
    "TRUNCATE jobs_job, clusters_observedpod, clusters_observedobject CASCADE",
    "UPDATE clusters_nodeaccelerator SET held = 0",
    "UPDATE quotas_quotausage SET used = 0",
)
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Level:
    """How a cluster lets gangs start: what its administrator applied, and what the portal must find out."""

    dispatch: str
    version: str = "1.36"
    objects: Callable[[str], Sequence[Json]] = lambda _domain: ()


def _pinned_at_birth(domain: str) -> list[Json]:
    """The policy, and the right to look at it."""
    without = rights.objects()
    return [*(each for each in rights.objects(with_policy=True) if each not in without), *born_pinned.objects(domain)]


# A further level of the portal is one more line.
LEVELS = {
    "L0": Level("gates"),
    "B": Level("born_pinned", objects=_pinned_at_birth),
}


@dataclass(frozen=True)
class Shape:
    """So many Jobs of so many pods, of one GPU each."""

    name: str
    jobs: int
    pods_a_job: int

    @property
    def pods(self) -> int:
        """All pods."""
        return self.jobs * self.pods_a_job


@dataclass(frozen=True)
class Measured:
    """What one start of a shape took and wrote."""

    seconds: float
    pod_writes: int
    violations: tuple[str, ...]


class Stage:
    """Use `running_stage`. Between two measurements nothing is left on the cluster."""

    def __init__(self, plane: ControlPlane, portal: RunningPortal, truth: Gateway) -> None:
        self.plane, self.portal, self._truth = plane, portal, truth
        self._number = 0

    def plain(self, shape: Shape) -> Measured:
        """Plain Jobs of the same pods, placed by kube-scheduler, while the portal stands still."""
        bodies = [plain_job(f"plain-{self._next()}", shape.pods_a_job) for _each in range(shape.jobs)]
        self.portal.pause()
        try:
            with self._recorded(shape) as measure:
                in_parallel(lambda body: self._truth.create("jobs", NAMESPACE, body), bodies)
                measure.until_running()
            self._empty_cluster()
        finally:
            self.portal.resume()
        self._until_idle()
        return measure.result()

    def dispatch(self, shape: Shape) -> Measured:
        """Jobs that the portal has placed already: from the first object on the cluster."""
        self.portal.halt("worker")
        self._submit(shape)
        self.portal.shell("from jobs.engine import cycle; cycle.run_once()")
        attempts = self.portal.rows("SELECT count(*) FROM jobs_attempt")
        if attempts != [(shape.jobs,)]:
            raise AssertionError(f"{attempts} of {shape.jobs} jobs were placed")
        with self._recorded(shape) as measure:
            self.portal.launch("worker")
            measure.until_running()
        self._clear(shape)
        return measure.result()

    def path(self, shape: Shape) -> Measured:
        """The whole way: from the first REST request of a person, who sends many jobs as lists."""
        with self._recorded(shape) as measure:
            began_s = time.monotonic()
            self._submit(shape)
            measure.until_running()
        self._clear(shape)
        return measure.result(began_s)

    @contextmanager
    def _recorded(self, shape: Shape) -> Iterator["_Measure"]:
        time.sleep(SETTLE_S)
        before = pod_writes(self.plane.admin.text("/metrics"))
        with Tape(self._truth) as tape:
            measure = _Measure(tape, shape.pods)
            yield measure
            time.sleep(SETTLE_S)
        measure.pod_writes = pod_writes(self.plane.admin.text("/metrics")) - before

    def _submit(self, shape: Shape) -> None:
        body = {
            "name": shape.name,
            "kind": "training",
            "image": "example.org/train:1",
            "workers": shape.pods_a_job,
            "gpus_per_worker": 1,
            "topology": {"mode": "none"},
            "env": RUN,
        }
        if shape.jobs < LISTED:
            in_parallel(self.portal.api.submit, [body] * shape.jobs)
        else:
            lists = [[body] * min(LIST, shape.jobs - first) for first in range(0, shape.jobs, LIST)]
            in_parallel(self._submit_list, lists)

    def _submit_list(self, bodies: Sequence[Json]) -> None:
        status, answer = self.portal.api.ask("POST", "jobs/batch/?team=vision", bodies)
        assert status == 201, answer

    def _clear(self, shape: Shape) -> None:
        """Take everything away; first the rows must be sound."""
        self._until_state(shape)
        if findings := self.portal.doctor():
            raise AssertionError(f"rows and cluster disagree: {findings[:3]}")
        self.portal.kill("worker")
        self._empty_cluster()
        self._until_idle()
        self.portal.change(*EMPTY)
        self._start_worker()

    def _start_worker(self) -> None:
        """Start it, and wait until it works: its start is no part of what is measured."""
        began_s = time.time()
        self.portal.launch("worker")
        beats = "SELECT 1 FROM core_heartbeat WHERE process = 'worker' AND seen_at > to_timestamp(%s)"
        self.portal.wait_for(lambda: self.portal.rows(beats, [began_s]), "the worker works")

    def _until_state(self, shape: Shape) -> None:
        query = "SELECT 1 FROM jobs_job WHERE state = 'running' HAVING count(*) = %s"
        self.portal.wait_for(lambda: self.portal.rows(query, [shape.jobs]), "the portal sees all run", PATIENCE_S)

    def _empty_cluster(self) -> None:
        self.plane.admin.delete_all("Job", NAMESPACE)
        self.portal.wait_for(self._is_empty, "no pod is left", PATIENCE_S)

    def _is_empty(self) -> bool:
        found = (self.plane.admin.request("GET", f"{path_of(kind, NAMESPACE)}?limit=1") for kind in ("Pod", "Job"))
        return not any(answer["items"] for _status, answer in found)

    def _until_idle(self) -> None:
        """Until the portal has seen that all is gone and can be placed on again."""
        query = """
            SELECT 1 FROM clusters_cluster WHERE heard_at > now() - interval '5 s'
            AND NOT EXISTS (SELECT 1 FROM clusters_observedpod WHERE gone_at IS NULL)
            AND NOT EXISTS (SELECT 1 FROM clusters_observedobject WHERE gone_at IS NULL)
            AND NOT EXISTS (SELECT 1 FROM clusters_node WHERE foreign_pods > 0)"""
        self.portal.wait_for(lambda: self.portal.rows(query), "the portal sees the cluster empty", PATIENCE_S)

    def _next(self) -> int:
        self._number += 1
        return self._number


class _Measure:
    """One measurement that is under way."""

    def __init__(self, tape: Tape, pods: int) -> None:
        self._tape, self._pods = tape, pods
        self.pod_writes = 0

    def until_running(self) -> None:
        """Wait for all pods."""
        self._tape.until_running(self._pods, timeout_s=PATIENCE_S)

    def result(self, began_s: float | None = None) -> Measured:
        """What it took, from the first Job that was seen or from the given moment on."""
        start_s = self._tape.first_job_s() if began_s is None else began_s
        violations = tuple(f"{each.rule} {each.subject}: {each.detail}" for each in self._tape.violations())
        return Measured(self._tape.last_bound_s() - start_s, self.pod_writes, violations)


@contextmanager
def running_stage(level: Level, nodes: int) -> Iterator[Stage]:
    """Register the cluster as an administrator does, and wait until the portal has found out its level."""
    with (
        running_plane("kube1", version=level.version, nodes=nodes) as plane,
        running_portal({}, settings=SETTINGS) as portal,
    ):
        for body in level.objects(DOMAIN):
            plane.admin.create(body)
        register(portal, plane)
        # Quota is not what this is about.
        portal.change("UPDATE quotas_quota SET nominal = 100000")
        query = "SELECT 1 FROM clusters_cluster WHERE probed_at IS NOT NULL AND dispatch = %s"
        portal.wait_for(lambda: portal.rows(query, [level.dispatch]), f"the cluster starts by {level.dispatch}", 90)
        with Gateway(Connection(server=plane.server, ca_data=plane.ca, token=plane.token)) as truth:
            yield Stage(plane, portal, truth)


def register(portal: RunningPortal, plane: ControlPlane) -> None:
    """Register a cluster and wait until its nodes are known."""
    levels = [{"name": name, "label_key": key} for name, key in TOPOLOGY]
    body = {"name": plane.name, "kubeconfig": plane.kubeconfig.read_text(), "levels": levels}
    status, answer = portal.api_of("admin").ask("POST", "clusters/", body)
    assert status == 201, answer
    nodes = len(plane.admin.items("Node"))
    query = (
        "SELECT 1 FROM clusters_node node JOIN clusters_cluster cluster ON cluster.id = cluster_id"
        " WHERE cluster.name = %s AND is_ready HAVING count(*) = %s"
    )
    portal.wait_for(lambda: portal.rows(query, [plane.name, nodes]), "the portal sees the nodes", PATIENCE_S)


def plain_job(name: str, pods: int) -> Json:
    """The Job that the portal would make, without what makes it the portal's: gate, plan and labels."""
    identity = Identity(
        name=name, namespace=NAMESPACE, domain=DOMAIN, installation="", run=name, attempt=1, epoch=1, tenant="vision"
    )
    container = ContainerValues(image="example.org/train:1", env=RUN)
    pod = PodValues(container=container, accelerator_resource="nvidia.com/gpu", gpus=1, grace_s=30)
    values = GangValues(
        identity=identity,
        pod=pod,
        workers=pods,
        is_gang=pods > 1,
        restart_policy="Never",
        backoff_limit=0,
        ttl_s=None,
    )
    body = gang.job(values)
    body["metadata"] = {"name": name, "namespace": NAMESPACE}
    template = body["spec"]["template"]
    template["metadata"] = {}
    del template["spec"]["schedulingGates"]
    body["spec"]["suspend"] = False
    return body


def in_parallel(call: Callable[[Any], object], things: Sequence[Any]) -> None:
    """Call it with each, some at a time; the first error is raised."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        for _done in pool.map(call, things):
            pass


def pod_writes(metrics: str) -> int:
    """Requests that wrote pods or parts of them (bindings, status), by the API server's own count."""
    total = 0.0
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(_LABEL.findall(line))
        if (labels.get("group"), labels.get("resource")) == ("", "pods") and labels.get("verb") in _WRITES:
            total += float(line.rpartition(" ")[2])
    return int(total)
