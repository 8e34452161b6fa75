"""Two teams with quota, and a simulated cluster that has nothing of theirs yet."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.models import Cluster
from clusters.simulated.fleet import uniform
from portal.identity.models import Team
from quotas.models import PriorityClass, Space, Tenancy
from quotas.sync import rounds, wanted
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.factories import make_cluster, make_flavor, make_priority_class, make_queue, make_team

PATHS = {
    "Namespace": "/api/v1/namespaces/{namespace}",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas/muster",
    "LimitRange": "/api/v1/namespaces/{namespace}/limitranges/muster",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/muster",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses/{namespace}",
}
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class World:
    """Team vision has 8 H100 and 4 A100, both of nvidia.com/gpu, and 2 slices; speech has no quota."""

    cluster: Cluster
    vision: Team
    speech: Team
    rung: PriorityClass


@pytest.fixture
def simulated() -> Iterator[SimulatedCluster]:
    with running_cluster(uniform(nodes=1, gpus=8), clock=10) as cluster:
        yield cluster


@pytest.fixture
def world(db: None, simulated: SimulatedCluster) -> World:
    h100, a100 = make_flavor("h100"), make_flavor("a100")
    mig = make_flavor("mig", resource_name="nvidia.com/mig-1g.10gb")
    vision, speech = make_team("vision"), make_team("speech")
    make_queue(vision, quota={h100: 8, a100: 4, mig: 2})
    rung = make_priority_class("research", 10_000, description="Experiments")
    return World(make_cluster("north", server=simulated.url, token=simulated.token), vision, speech, rung)


def look(world: World) -> None:
    """One round, as the worker makes it."""
    rounds.sync_one(world.cluster, wanted.everything())


def keep(world: World) -> None:
    """Have the portal keep the spaces."""
    Tenancy.objects.update_or_create(cluster=world.cluster, defaults={"is_kept": True})


def states(world: World) -> dict[str, str]:
    """How each space stands, by namespace; "" is the ladder."""
    return {row.team.namespace if row.team else "": row.state for row in Space.objects.select_related("team")}


def objects_of(world: World, team: Team | None) -> dict[str, dict[str, Any]]:
    """What was seen of one space, by kind."""
    return {each["kind"]: each for each in Space.objects.get(cluster=world.cluster, team=team).objects_seen}


def stored(simulated: SimulatedCluster, kind: str, namespace: str) -> tuple[int, Any]:
    """An object on the cluster."""
    return simulated.request("GET", PATHS[kind].format(namespace=namespace))


def alter(simulated: SimulatedCluster, kind: str, namespace: str, patch: dict[str, Any]) -> None:
    """Change it behind the portal's back."""
    status, answer = simulated.request("PATCH", PATHS[kind].format(namespace=namespace), patch, kind=MERGE)
    assert status == 200, answer
