"""What a random schedule does to a portal and its cluster: each act is one thing that happens in the world."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clusters.k8s.values import GatewayError
from jobs.simulator.invariants import Violation
from tests.crash.proxy import Moment, Weather
from tests.crash.site import NAMESPACE, Site

Request = Callable[..., tuple[int, Any]]
MERGE_PATCH = "application/merge-patch+json"
GPU = "nvidia.com/gpu"


@dataclass
class World:
    """A site under chaos. `outside` talks to the cluster as its administrator, past the proxy."""

    site: Site
    outside: Request
    nodes: list[str]
    random: Random
    jobs: list[str] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)

    def node(self) -> str:
        """Any node."""
        return self.random.choice(self.nodes)

    def heal(self) -> None:
        """Undo all that would not pass by itself."""
        self.site.proxy.turn(Weather.FAIR)
        portal = self.site.portal
        for name in portal.services().keys() - portal.processes.keys():
            portal.launch(name)
        for name in self.foreign:
            self.outside("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
        self.foreign.clear()
        for node in self.nodes:
            self.outside("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}}, kind=MERGE_PATCH)


def kill_worker(world: World) -> None:
    """The driver dies in the middle of whatever it does; a service manager starts it again."""
    _kill(world, "worker")


def kill_watch(world: World) -> None:
    """The mirror dies."""
    _kill(world, "watch")


def kill_beat(world: World) -> None:
    """The clock dies."""
    _kill(world, "beat")


def restart_database(world: World) -> None:
    """Every connection is lost in the middle of whatever it does."""
    world.site.portal.restart_postgres()


def outage(world: World) -> None:
    """The API server cannot be reached; it comes back with the next act or at the end."""
    world.site.proxy.turn(Weather.OUTAGE)


def silence(world: World) -> None:
    """The API server takes requests and answers none."""
    world.site.proxy.turn(Weather.SILENCE)


def fair_weather(world: World) -> None:
    """The API server answers."""
    world.site.proxy.turn(Weather.FAIR)


def break_streams(world: World) -> None:
    """Watches are cut and have to be resumed."""
    world.site.proxy.break_streams()


def lose_request(world: World) -> None:
    """The next write never arrives."""
    world.site.proxy.hold(world.random.choice(["POST", "PATCH", "DELETE"]), "namespaces", at=Moment.ARRIVAL).lose()


def lose_reply(world: World) -> None:
    """The next write is done, and nobody is told."""
    world.site.proxy.hold(world.random.choice(["POST", "PATCH", "DELETE"]), "namespaces", at=Moment.REPLY).lose()


def delete_object(world: World) -> None:
    """Somebody deletes the Job of a run."""
    _delete_any(world, "jobs")


def delete_pod(world: World) -> None:
    """Somebody deletes a pod of a run, gated or running."""
    _delete_any(world, "pods")


def foreign_pod(world: World) -> None:
    """Somebody else's pod takes GPUs, where the cluster's scheduler finds room on one node."""
    name = f"foreign-{world.random.randrange(10**9)}"
    resources = {"limits": {GPU: str(world.random.choice([1, 2, 4]))}}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": world.node()},
        "containers": [{"name": "main", "image": "example.org/other:1", "resources": resources}],
        "tolerations": [{"operator": "Exists"}],
    }
    world.outside("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
    world.foreign.append(name)


def cordon(world: World) -> None:
    """An administrator closes a node to new pods."""
    spec = {"spec": {"unschedulable": True}}
    world.outside("PATCH", f"/api/v1/nodes/{world.node()}", spec, kind=MERGE_PATCH)


def cancel(world: World) -> None:
    """A person cancels a run."""
    if world.jobs:
        world.site.portal.api.ask("POST", f"jobs/{world.random.choice(world.jobs)}/cancel/")


def scale(world: World) -> None:
    """A person scales a service."""
    if world.services:
        replicas = {"replicas": world.random.randint(0, 4)}
        world.site.portal.api.ask("POST", f"jobs/{world.random.choice(world.services)}/scale/", replicas)


ACTS = (
    kill_worker,
    kill_watch,
    kill_beat,
    restart_database,
    outage,
    silence,
    fair_weather,
    break_streams,
    lose_request,
    lose_reply,
    delete_object,
    delete_pod,
    foreign_pod,
    cordon,
    cancel,
    scale,
)


def _kill(world: World, name: str) -> None:
    portal = world.site.portal
    if name in portal.processes:
        portal.kill(name)
    portal.launch(name)


def _delete_any(world: World, kind: str) -> None:
    """Past the proxy. Between list and delete the object may go by itself."""
    with contextlib.suppress(GatewayError):
        found = world.site.truth.list(kind, NAMESPACE)["items"]
        if found:
            metadata = world.random.choice(found)["metadata"]
            world.site.truth.delete(kind, NAMESPACE, metadata["name"], uid=metadata["uid"], propagation="Background")
