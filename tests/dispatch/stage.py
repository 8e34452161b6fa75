"""A portal without Celery: the watcher in a thread, cycle and driver called in a loop until something holds."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from clusters.models import Cluster, ObservedPod, ResourceFlavor
from clusters.watch.hints import Hints
from clusters.watch.process import WatchProcess
from jobs.accounting import drift
from jobs.dispatch.reconcile import reconcile_due
from jobs.engine import cycle
from jobs.models import Attempt, Job
from jobs.services import control, intake, submit
from portal.core.audit import SYSTEM
from portal.identity.models import Team, User
from quotas.models import Queue
from tests.clusters_running import SimulatedCluster
from tests.factories import (
    make_cluster,
    make_flavor,
    make_membership,
    make_priority_class,
    make_queue,
    make_team,
    make_user,
)
from tests.watchlog import WatchLog

PRODUCT = "NVIDIA-H100-80GB-HBM3"
RACK = "topology.muster.internal/rack"
GROUPS = {
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
}
PATIENCE_S = 40.0
PAUSE_S = 0.05


@dataclass
class Stage:
    """One simulated cluster, registered; one team with a queue; the watcher running."""

    simulated: SimulatedCluster
    cluster: Cluster
    flavor: ResourceFlavor
    team: Team
    queue: Queue
    owner: User
    log: WatchLog
    # Rules that the test has somebody else break on the cluster.
    forgiven: set[str] = field(default_factory=set)
    stopping: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    @property
    def namespace(self) -> str:
        return self.team.namespace

    def submit(self, **fields: Any) -> Job:
        """Submit a job as the services do; `run_s`, `exit_code` and other fates go by `env`."""
        document: dict[str, Any] = {
            "name": "train",
            "kind": "training",
            "image": "example.org/train:1",
            "gpus_per_worker": 8,
            "env": {"SIM_RUN_S": "600"},
            **fields,
        }
        spec = intake.read_document(document, team=self.team)
        return submit.submit_job(actor=SYSTEM, owner=self.owner, request=submit.resolve(spec, team=self.team))

    def serve(self, replicas: int, **fields: Any) -> Job:
        """Submit a service of one GPU a replica."""
        return self.submit(
            **{
                "name": "serve",
                "kind": "inference",
                "replicas": replicas,
                "gpus_per_worker": 1,
                "port": 8080,
                "service_port": 80,
                "env": {},
                **fields,
            }
        )

    def turn(self) -> None:
        """One beat: a cycle, then a pass of the driver."""
        cycle.run_once()
        reconcile_due()

    def until(self, probe: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
        """Beat until the probe holds; fail with what all jobs say by then."""
        end = time.monotonic() + timeout_s
        while not (found := probe()):
            if time.monotonic() > end:
                raise AssertionError(f"not within {timeout_s:.0f} s: {what}\n{self.report()}")
            self.turn()
            time.sleep(PAUSE_S)
        return found

    def until_state(self, job: Job, *states: str, timeout_s: float = PATIENCE_S) -> Job:
        """Beat until the job is in one of these states; fail at once if it ends in another."""

        def reached() -> bool:
            job.refresh_from_db()
            if job.is_final and job.state not in states:
                raise AssertionError(f"{job} is {job.state}, not {states}\n{self.report()}")
            return job.state in states

        self.until(reached, f"{job} is {' or '.join(states)}", timeout_s)
        return job

    def until_step(self, job: Job, step: str, timeout_s: float = PATIENCE_S) -> Attempt:
        """Beat until the newest attempt of the job is at this step."""

        def at_step() -> Attempt | None:
            return job.attempts.filter(step=step).order_by("-number").first()

        found: Attempt = self.until(at_step, f"{job} is at step {step}", timeout_s)
        return found

    def cancel(self, job: Job) -> None:
        job.refresh_from_db()
        control.cancel_job(actor=SYSTEM, job=job)

    def scale(self, job: Job, replicas: int) -> None:
        job.refresh_from_db()
        control.scale_service(actor=SYSTEM, job=job, replicas=replicas)

    def held(self) -> int:
        """GPUs that the ledger says are held."""
        return sum(count for _key, count in drift.held_by_queue().items())

    def objects(self, kind: str = "jobs") -> list[Any]:
        """What the cluster itself has in the team's namespace."""
        status, listed = self.simulated.request("GET", self._path(kind))
        assert status == 200, listed
        return list(listed["items"] or ())

    def pods(self) -> list[Any]:
        return self.objects("pods")

    def bound(self) -> list[str]:
        """The nodes of pods that may use GPUs now."""
        alive = [pod for pod in self.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        return sorted(pod["spec"]["nodeName"] for pod in alive if pod["spec"].get("nodeName"))

    def was_bound(self, attempt: Attempt) -> bool:
        """Whether a pod of the attempt ever got a node, by the cluster's own watch."""
        return any(
            body["metadata"]["name"].startswith(f"{attempt.object_name}-") and body["spec"].get("nodeName")
            for kind, _change, body in self.log.events
            if kind == "pods"
        )

    def create(self, kind: str, body: Any) -> Any:
        """Make an object in the team's namespace, as somebody other than the portal."""
        status, answer = self.simulated.request("POST", self._path(kind), body)
        assert status == 201, answer
        return answer

    def delete(self, kind: str, name: str, *, propagation: str = "Background") -> None:
        status, answer = self.simulated.request("DELETE", self._path(kind, name), {"propagationPolicy": propagation})
        assert status == 200, answer

    def patch(self, kind: str, name: str, body: Any) -> None:
        """Merge into an object of the team's namespace, as somebody other than the portal."""
        merge = "application/merge-patch+json"
        status, answer = self.simulated.request("PATCH", self._path(kind, name), body, kind=merge)
        assert status == 200, answer

    def patch_status(self, kind: str, name: str, status: Any) -> None:
        """Merge into the status of an object, as its controller does."""
        merge = "application/merge-patch+json"
        path = f"{self._path(kind, name)}/status"
        code, answer = self.simulated.request("PATCH", path, {"status": status}, kind=merge)
        assert code == 200, answer

    def _path(self, kind: str, *name: str) -> str:
        return "/".join((GROUPS.get(kind, "/api/v1"), "namespaces", self.namespace, kind, *name))

    def node(self, name: str, **spec: Any) -> None:
        """Merge into a node's spec, `unschedulable=True` for instance."""
        merge = "application/merge-patch+json"
        status, answer = self.simulated.request("PATCH", f"/api/v1/nodes/{name}", {"spec": spec}, kind=merge)
        assert status == 200, answer

    def foreign_pod(self, node: str, gpus: int, name: str = "foreign") -> None:
        """A pod that is not ours takes GPUs of a node, past every scheduler."""
        resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
        body = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": "example.org/other:1", "resources": resources}],
                "tolerations": [{"operator": "Exists"}],
            },
        }
        status, answer = self.simulated.request("POST", "/api/v1/namespaces/default/pods", body)
        assert status == 201, answer

    def report(self) -> str:
        """All that a failed test wants to know."""
        jobs = Job.objects.values("name", "number", "state", "reason_code", "outcome_code", "outcome_message")
        attempts = Attempt.objects.values("object_name", "step", "stop_code", "stop_message")
        pods = ObservedPod.objects.values("name", "phase", "is_gated", "node_name", "reason", "gone_at", "exit_code")
        return "\n".join(map(str, [*jobs, *attempts, *pods]))


def set_stage(simulated: SimulatedCluster, log: WatchLog) -> Stage:
    """Register the cluster and start the watcher; returns once the nodes are known."""
    team = make_team()
    status, answer = simulated.request("POST", "/api/v1/namespaces", {"metadata": {"name": team.namespace}})
    assert status in (201, 409), answer
    flavor = make_flavor("h100", label_value=PRODUCT)
    cluster = make_cluster(server=simulated.url, token=simulated.token, heard_at=None, synced_at=None)
    cluster.levels.create(depth=0, name="rack", label_key=_rack_key(simulated))
    owner = make_membership(make_user(), team).user
    make_priority_class(is_default=True)
    stage = Stage(simulated, cluster, flavor, team, make_queue(team, quota={flavor: 1_000}), owner, log)
    raise_curtain(stage)
    return stage


def raise_curtain(stage: Stage) -> None:
    """Start the watcher, after `strike` for instance."""
    stage.stopping = threading.Event()
    stage.thread = threading.Thread(target=_watch, args=(stage.stopping,))
    stage.thread.start()


def strike(stage: Stage) -> None:
    """End the watcher."""
    stage.stopping.set()
    if stage.thread:
        stage.thread.join(10)


def _watch(stopping: threading.Event) -> None:
    try:
        WatchProcess(hints=Hints(lambda _task: None)).run(stopping)
    finally:
        connection.close()


def _rack_key(simulated: SimulatedCluster) -> str:
    labels = simulated.request("GET", "/api/v1/nodes")[1]["items"][0]["metadata"]["labels"]
    return str(next(key for key in labels if key.endswith("rack")))
