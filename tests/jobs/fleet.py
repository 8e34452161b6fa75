"""A small fleet with a queue, for tests of the cycle and the driver."""

from collections.abc import Mapping
from dataclasses import dataclass

from clusters.models import Cluster, Node, NodeAccelerator, ResourceFlavor, TopologyLevel
from jobs.dispatch import reconcile
from jobs.dispatch.view import View, load_views
from jobs.models import Job
from portal.identity.models import Team, User
from quotas.models import Queue
from tests.factories import (
    make_cluster,
    make_flavor,
    make_job,
    make_membership,
    make_node,
    make_queue,
    make_team,
    make_user,
)

RACK = "example.org/rack"


@dataclass(frozen=True)
class Fleet:
    """One cluster of equal nodes, and one team whose queue has quota for them."""

    cluster: Cluster
    nodes: list[Node]
    flavor: ResourceFlavor
    team: Team
    queue: Queue
    owner: User

    def job(self, **fields: object) -> Job:
        """Queue a training job of the team."""
        values = {"spec": {"name": "train"}, **fields}
        return make_job(self.team, self.owner, queue=self.queue, **values)

    def held(self) -> int:
        """GPUs that the nodes' counters say are held."""
        return sum(NodeAccelerator.objects.values_list("held", flat=True))

    def held_by_node(self) -> Mapping[str, int]:
        """The same, by node."""
        return dict(NodeAccelerator.objects.filter(held__gt=0).values_list("node__name", "held"))


def make_fleet(*, nodes: int = 4, gpus: int = 8, per_rack: int = 2, quota: int = 1_000) -> Fleet:
    """Make a cluster of `nodes` nodes in racks, and a queue that may hold `quota` GPUs."""
    cluster, flavor = make_cluster(), make_flavor("h100")
    TopologyLevel.objects.create(cluster=cluster, depth=0, name="rack", label_key=RACK)
    made = [
        make_node(cluster, flavor=flavor, gpus=gpus, name=f"n{index}", labels={RACK: f"r{index // per_rack}"})
        for index in range(nodes)
    ]
    team = make_team()
    owner = make_membership(make_user(), team).user
    return Fleet(cluster, made, flavor, team, make_queue(team, quota={flavor: quota}), owner)


def claim() -> list[View]:
    """What a worker claims now, as it looks at it."""
    return load_views(reconcile._claim())
