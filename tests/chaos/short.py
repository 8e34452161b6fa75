"""What one short step does to a portal without processes: watcher, cycle and driver are called on the spot."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from random import Random
from typing import Any

from django.db import close_old_connections, connection
from django.db.models import F

from clusters.models import Node
from clusters.services.maintenance import ask_for_maintenance, end_maintenance
from clusters.services.quarantine import quarantine_node, release_node
from jobs.dispatch.reconcile import reconcile_due
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.core.errors import DomainError
from quotas.models import Quota
from quotas.services.tree import set_paused, set_quota
from tests.clusters_running import JSON_PATCH, MERGE_PATCH
from tests.dispatch.scrape import scrape
from tests.dispatch.stage import Stage, raise_curtain, strike

NODES = 4
GPUS = 8
RANKS = ((1, 1), (1, 8), (2, 4), (2, 8), (3, 2), (4, 8), (8, 2))
# By the clock of the cluster, which runs ten times as fast.
SHORT_S = (2, 10, 50)
# Pods that go at once would hide that their GPUs were given back before.
STOP_S = ("0.2", "15")
MOST_ALIVE = 10
LOST = (("POST", "Job"), ("POST", "Service"), ("POST", "Deployment"), ("PATCH", "Job"), ("PATCH", "Pod"))
XIDS = (13, 31, 62, 79)


@dataclass
class Ground:
    """A stage under chaos, and what has to be undone."""

    stage: Stage
    random: Random
    story: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    is_out: bool = False

    def alive(self) -> list[Job]:
        """Runs that are not over."""
        return list(Job.objects.exclude(state__in=Job.FINAL).order_by("pk"))

    def node(self) -> str:
        """Any node, but rather one where something is held."""
        busy = list(Node.objects.filter(accelerators__held__gt=0).order_by("name").values_list("name", flat=True))
        anyone = f"node-{self.random.randrange(NODES)}"
        return self.random.choice(busy) if busy and self.random.random() < 0.7 else anyone

    def control(self, method: str, path: str, body: Any = None) -> None:
        """Turn a switch of the simulated cluster."""
        self.stage.simulated.control(method, f"/simulated/{path}", body)

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, Any]:
        """Somebody else's request to the cluster; it fails as ours do, with status 0."""
        if self.is_out:
            return 0, None
        try:
            return self.stage.simulated.request(method, path, body, kind=kind)
        except (OSError, HTTPException):  # an order to lose a reply has met this one
            return 0, None

    def objects(self, kind: str) -> list[Any] | None:
        """What the cluster has in the team's namespace; None while it does not tell."""
        group = {"jobs": "/apis/batch/v1", "deployments": "/apis/apps/v1"}.get(kind, "/api/v1")
        status, listed = self.ask("GET", f"{group}/namespaces/{self.stage.namespace}/{kind}")
        return list(listed["items"] or ()) if status == 200 else None

    def at_once(self, *works: Callable[[], object]) -> None:
        """Do several things at the same time, each on a connection of its own."""
        threads = [threading.Thread(target=self._one, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _one(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # told as a violation: a thread has nobody else to tell
            self.raised.append(repr(error))
        finally:
            connection.close()


def submit_gang(ground: Ground) -> None:
    """A person submits a gang."""
    workers, gpus = ground.random.choice(RANKS)
    if len(ground.alive()) < MOST_ALIVE:
        ground.stage.submit(
            workers=workers,
            gpus_per_worker=gpus,
            backoff_limit=ground.random.choice([0, 3]),
            priority=ground.random.choice(["normal", "urgent"]),
            env={
                "SIM_RUN_S": str(ground.random.choice(SHORT_S)),
                "SIM_EXIT_CODE": ground.random.choice("00001"),
                "SIM_STOP_S": ground.random.choice(STOP_S),
            },
        )


def submit_service(ground: Ground) -> None:
    """A person submits a service."""
    if len(ground.alive()) < MOST_ALIVE:
        fate = {"SIM_STOP_S": ground.random.choice(STOP_S)}
        ground.stage.serve(ground.random.randint(1, 3), gpus_per_worker=ground.random.choice([1, 4]), env=fate)


def cancel(ground: Ground) -> None:
    """A person cancels a run."""
    if alive := ground.alive():
        ground.stage.cancel(ground.random.choice(alive))


def scale(ground: Ground) -> None:
    """A person scales a service."""
    services = [job for job in ground.alive() if job.is_service and job.state != Job.State.QUEUED]
    if services:
        _unless_refused(lambda: ground.stage.scale(ground.random.choice(services), ground.random.randint(0, 4)))


def change_quota(ground: Ground) -> None:
    """An administrator gives the queue more or less."""
    queue, flavor = ground.stage.queue, ground.stage.flavor
    version = Quota.objects.get(queue=queue, flavor=flavor).version
    nominal = ground.random.choice([4, 8, 16, 32, 1_000])
    set_quota(actor=SYSTEM, owner=queue, flavor=flavor, nominal=nominal, expected_version=version)


def pause_queue(ground: Ground) -> None:
    """An administrator stops the queue, or lets it go on."""
    queue = ground.stage.queue
    queue.refresh_from_db()
    set_paused(actor=SYSTEM, queue=queue, is_paused=not queue.is_paused, expected_version=queue.version)


def quarantine(ground: Ground) -> None:
    """An administrator trusts a node no more, or again."""
    node = Node.objects.get(name=ground.node())
    if node.quarantined_at:
        return _unless_refused(lambda: release_node(actor=SYSTEM, node=node))
    return _unless_refused(lambda: quarantine_node(actor=SYSTEM, node=node, reason="chaos"))


def maintenance(ground: Ground) -> None:
    """An administrator takes a node out of use, or opens it again."""
    node = Node.objects.get(name=ground.node())
    if node.maintenance_at:
        return _unless_refused(lambda: end_maintenance(actor=SYSTEM, node=node))
    soon = ground.random.choice([None, clock.now() + timedelta(seconds=1)])
    return _unless_refused(lambda: ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=soon))


def fail_node(ground: Ground) -> None:
    """A node falls silent."""
    ground.control("POST", f"nodes/{ground.node()}/fail")


def recover_node(ground: Ground) -> None:
    """A node is back, if it was away."""
    ground.control("POST", f"nodes/{ground.node()}/recover")


def change_gpus(ground: Ground) -> None:
    """A device plug-in offers another number of GPUs."""
    ground.control("PUT", f"nodes/{ground.node()}/gpus", {"allocatable": ground.random.choice([0, 4, 7, 8, 8])})


def report_condition(ground: Ground) -> None:
    """A health daemon reports a fault, or its end."""
    path, status = f"/api/v1/nodes/{ground.node()}", ground.random.choice(["True", "False"])
    code, body = ground.ask("GET", path)
    if code != 200:
        return
    mine = {"type": "GpuUnhealthy", "status": status, "reason": "Chaos"}
    wanted = [each for each in body["status"]["conditions"] if each["type"] != mine["type"]] + [mine]
    patch = {"status": {"conditions": wanted}}
    ground.ask("PATCH", f"{path}/status", patch, kind=MERGE_PATCH)


def show_xid(ground: Ground) -> None:
    """An exporter shows an XID, or none any more, and is looked at."""
    place = f"gpus/{ground.node()}/{ground.random.randrange(GPUS)}"
    ground.control("PUT", place, {"xid": ground.random.choice(XIDS)})
    scrape()
    if ground.random.random() < 0.5:
        ground.control("DELETE", place)
        scrape()


def cordon(ground: Ground) -> None:
    """An administrator of the cluster closes a node, or opens it."""
    body = {"spec": {"unschedulable": ground.random.choice([True, None])}}
    ground.ask("PATCH", f"/api/v1/nodes/{ground.node()}", body, kind=MERGE_PATCH)


def delete_pod(ground: Ground) -> None:
    """Somebody deletes a pod."""
    _delete_any(ground, "pods")


def delete_owner(ground: Ground) -> None:
    """Somebody deletes a Job or a Deployment, with its pods or without them."""
    _delete_any(ground, ground.random.choice(["jobs", "deployments"]))


def delete_service(ground: Ground) -> None:
    """Somebody deletes what gives the ranks their names."""
    _delete_any(ground, "services")


def take_name(ground: Ground) -> None:
    """Somebody else's object has the name of an attempt that is about to be created: 409."""
    attempt = Attempt.objects.filter(step=Attempt.Step.PLANNED).first()
    if attempt is None:
        return
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.org/other:1"}]}
    body = {"metadata": {"name": attempt.object_name}, "spec": {"suspend": True, "template": {"spec": spec}}}
    ground.ask("POST", f"/apis/batch/v1/namespaces/{ground.stage.namespace}/jobs", body)


def open_gate(ground: Ground) -> None:
    """Somebody opens a gate onto the very node of the plan: the release finds nothing to test, 422."""
    ready = Attempt.objects.filter(step=Attempt.Step.RELEASING, job__workload="job").select_related("job")
    gated = [pod for pod in ground.objects("pods") or () if pod["spec"].get("schedulingGates")]
    for attempt in ready:
        mine = [pod for pod in gated if pod["metadata"]["name"].startswith(f"{attempt.object_name}-")]
        for pod in mine[:1]:
            rank = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            node = attempt.allocations.select_related("node").get(rank=rank).node.name
            _release(ground, pod["metadata"]["name"], node)


def small_namespace_quota(ground: Ground) -> None:
    """The namespace lets in fewer pods than a gang has, or any number again."""
    path = f"/api/v1/namespaces/{ground.stage.namespace}/resourcequotas"
    if ground.random.random() < 0.5:
        ground.ask("DELETE", f"{path}/small")
    else:
        body = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": str(ground.random.randint(1, 3))}}}
        ground.ask("POST", path, body)


def foreign_pod(ground: Ground) -> None:
    """Somebody else's pod takes GPUs where the cluster's scheduler finds room on one node."""
    resources = {"limits": {"nvidia.com/gpu": str(ground.random.choice([1, 4]))}}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": ground.node()},
        "containers": [{"name": "main", "image": "example.org/other:1", "resources": resources}],
        "tolerations": [{"operator": "Exists"}],
    }
    body = {"metadata": {"generateName": "foreign-"}, "spec": spec}
    ground.ask("POST", "/api/v1/namespaces/default/pods", body)


def lose_reply(ground: Ground) -> None:
    """The next such write is done, and nobody is told."""
    method, kind = ground.random.choice(LOST)
    ground.control("POST", "lose-reply", {"method": method, "kind": kind})


def outage(ground: Ground) -> None:
    """The API server cannot be reached, or answers again."""
    ground.is_out = not ground.is_out
    ground.control("POST", "outage", {"seconds": 600 if ground.is_out else 0})


def forget_the_past(ground: Ground) -> None:
    """Watches get a 410, one way or the other."""
    ground.control("POST", "compact", {"by_status": ground.random.choice([True, False])})


def forget_rights(ground: Ground) -> None:
    """A server that has just started refuses everything for a moment."""
    ground.control("POST", "forget-rights", {"seconds": 0.3})


def wrong_clock(ground: Ground) -> None:
    """The server's clock is ahead of ours, behind, or right."""
    ground.control("PUT", "clock", {"ahead": ground.random.choice([-7200, -30, 0, 30, 7200])})


def two_workers(ground: Ground) -> None:
    """Several workers make a pass at the same moment."""
    ground.at_once(reconcile_due, reconcile_due, reconcile_due)


def two_cycles(ground: Ground) -> None:
    """Two cycles begin at the same moment, while a worker works."""
    ground.at_once(cycle.run_once, cycle.run_once, reconcile_due)


def stale_worker(ground: Ground) -> None:
    """A worker hangs at a request; its claim is taken over, and then it goes on with what it saw."""
    ground.control("PUT", "latency", {"seconds": 0.25})
    late = threading.Timer(0.1, lambda: ground.control("PUT", "latency", {"seconds": 0}))
    late.start()
    Attempt.objects.exclude(step=Attempt.Step.ENDED).update(due_at=clock.now())
    ground.at_once(reconcile_due, _taking_over)
    late.join()


def drop_connections(ground: Ground) -> None:
    """The database drops every connection but ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'"
        )


def restart_watcher(ground: Ground) -> None:
    """The mirror ends and begins anew."""
    strike(ground.stage)
    raise_curtain(ground.stage)


ACTS = (
    *(
        submit_gang,
        submit_gang,
        submit_gang,
        submit_gang,
        submit_service,
        cancel,
        scale,
        change_quota,
        pause_queue,
        quarantine,
        maintenance,
    ),
    *(fail_node, recover_node, change_gpus, report_condition, show_xid, cordon),
    *(delete_pod, delete_owner, delete_service, take_name, open_gate, small_namespace_quota, foreign_pod),
    *(lose_reply, outage, forget_the_past, forget_rights, wrong_clock),
    *(two_workers, two_cycles, stale_worker, drop_connections, restart_watcher),
)


def _taking_over() -> None:
    """Another worker, to whom the claims look abandoned."""
    past = clock.now() - timedelta(seconds=1)
    Attempt.objects.filter(claimed_until__isnull=False).update(claimed_until=past, fence=F("fence"))
    reconcile_due()


def _unless_refused(work: Callable[[], object]) -> None:
    """A person may be refused: somebody was faster, or the node is not what the page said."""
    try:
        work()
    except DomainError:
        close_old_connections()


def _delete_any(ground: Ground, kind: str) -> None:
    found = ground.objects(kind)
    if found:
        name = ground.random.choice(found)["metadata"]["name"]
        group = {"jobs": "/apis/batch/v1", "deployments": "/apis/apps/v1"}.get(kind, "/api/v1")
        path = f"{group}/namespaces/{ground.stage.namespace}/{kind}/{name}"
        options = {"propagationPolicy": ground.random.choice(["Background", "Orphan"])}
        ground.ask("DELETE", path, options)


def _release(ground: Ground, name: str, node: str) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    patch = [
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    path = f"/api/v1/namespaces/{ground.stage.namespace}/pods/{name}"
    ground.ask("PATCH", path, patch, kind=JSON_PATCH)
