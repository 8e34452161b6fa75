"""How far apart the replicas of a service stand: it changes as they come and go, where a gang keeps its place."""

from collections.abc import Mapping, Sequence

from clusters.models import TopologyLevel
from jobs.models import Allocation, Attempt
from jobs.scheduler.types import CLUSTER, NODE

Labels = Mapping[str, str]


def update(attempt: Attempt) -> None:
    """Write the lowest level whose one domain holds all places that the attempt holds now."""
    held = Allocation.objects.filter(attempt=attempt, released_at=None)
    nodes = dict(held.values_list("node_id", "node__labels"))
    if not nodes:
        return
    levels = TopologyLevel.objects.filter(cluster_id=attempt.cluster_id).order_by("depth")
    level = lowest_common(list(nodes.values()), list(levels.values_list("name", "label_key")))
    Attempt.objects.filter(pk=attempt.pk).exclude(level=level).update(level=level)


def lowest_common(nodes: Sequence[Labels], levels: Sequence[tuple[str, str]]) -> str:
    """Return the lowest level at which the nodes (their labels) are together; levels are (name, key), widest first.

    A rack belongs to its block: nodes that part at one level are together at none below it.
    """
    if len(nodes) == 1:
        return NODE
    lowest = CLUSTER
    for name, key in levels:
        domains = {labels.get(key) for labels in nodes}
        if len(domains) > 1 or None in domains:
            break
        lowest = name
    return lowest
