"""All parts of one cluster, put together."""

from dataclasses import dataclass, field
from pathlib import Path

from clusters.simulated.clock import Clock
from clusters.simulated.controllers.cron import CronJobController
from clusters.simulated.controllers.deployment import DeploymentController
from clusters.simulated.controllers.garbage import GarbageCollector
from clusters.simulated.controllers.job import JobController
from clusters.simulated.controllers.replicas import ReplicaSetController
from clusters.simulated.controllers.stateful import StatefulSetController
from clusters.simulated.fleet import Fleet, populate
from clusters.simulated.kubelet import KubeletOptions, Kubelets
from clusters.simulated.nodes import Nodes
from clusters.simulated.scheduler import Scheduler
from clusters.simulated.state import StateFile, read_state, restore
from clusters.simulated.store import Store
from clusters.simulated.world import VERSION, World, make_world


@dataclass(frozen=True, slots=True)
class Options:
    clock: float = 1.0
    history: int = 10_000
    state: Path | None = None
    kubelet: KubeletOptions = field(default_factory=KubeletOptions)


@dataclass(slots=True)
class Cluster:
    world: World
    nodes: Nodes
    state: StateFile | None


def make_cluster(fleet: Fleet, options: Options) -> Cluster:
    """Must be called inside a running event loop. Raises ValueError for an unreadable state file."""
    store = Store(options.history)
    saved = read_state(options.state)
    if saved is not None:
        store.load(saved)
    world = make_world(fleet.get("name", "simulated"), store, Clock(options.clock))
    world.git_version = fleet.get("version") or VERSION
    kubelets = Kubelets(world, options.kubelet)
    nodes = Nodes(world, kubelets)
    parts = (
        GarbageCollector(world),
        JobController(world),
        CronJobController(world),
        ReplicaSetController(world),
        DeploymentController(world),
        StatefulSetController(world),
        Scheduler(world),
    )
    if saved is not None:
        restore(world, kubelets, saved)
    populate(fleet, store, world.api)
    nodes.resume()
    kubelets.resume()
    for part in parts:
        part.resume()
    state = StateFile(options.state, world, kubelets) if options.state else None
    return Cluster(world, nodes, state)
