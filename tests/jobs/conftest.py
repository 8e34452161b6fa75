"""A team with GPUs to run on, and pages under the portal's own addresses."""

from dataclasses import dataclass

import pytest

from clusters.models import Cluster, PersistentClaim, ResourceFlavor, TopologyLevel
from portal.identity.models import Team
from quotas.models import Queue
from tests.factories import make_cluster, make_flavor, make_node, make_priority_class, make_queue

RACK = "topology.example/rack"


@dataclass(frozen=True)
class Supply:
    """One cluster of two racks with two nodes of eight GPUs each, and the team's queue with a quota of 32."""

    cluster: Cluster
    flavor: ResourceFlavor
    queue: Queue


@pytest.fixture
def supply(team: Team) -> Supply:
    flavor = make_flavor("h100", title="H100 80GB")
    cluster = make_cluster("sim-east")
    TopologyLevel.objects.create(cluster=cluster, depth=0, name="rack", label_key=RACK)
    for number in range(4):
        make_node(cluster, flavor=flavor, name=f"n{number}", labels={RACK: f"r{number // 2}"})
    for claim, modes in {"training-data": ["ReadWriteOnce"], "shared": ["ReadWriteMany"]}.items():
        PersistentClaim.objects.create(cluster=cluster, namespace=team.namespace, name=claim, access_modes=modes)
    make_priority_class("research", 10_000, is_default=True)
    make_priority_class("development", 100)
    return Supply(cluster, flavor, make_queue(team, quota={flavor: 32}, name="vision"))
