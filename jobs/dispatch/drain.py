"""Tell when a node in maintenance is empty: the driver stops what is there, this looks whether anything is left."""

from clusters.models import NodeMaintenance, ObservedPod
from clusters.selectors.capacity import stale_cluster_ids
from clusters.services.maintenance import note_drained
from jobs.dispatch.view import TERMINAL
from jobs.models import Allocation
from portal.core import clock


def note_drained_nodes() -> int:
    """Note each node in maintenance on which nothing of ours is left; return how many there were.

    Nothing is left when no place is held, which takes proof, and no pod of ours is seen. Of a silent cluster nothing
    is known.
    """
    live = NodeMaintenance.objects.filter(ended_at=None, drained_at=None).select_related("node__cluster")
    waiting = list(live.exclude(node__cluster_id__in=stale_cluster_ids(clock.now())).order_by("pk"))
    return sum(note_drained(maintenance=each) for each in waiting if not _is_in_use(each))


def _is_in_use(maintenance: NodeMaintenance) -> bool:
    node = maintenance.node
    if Allocation.objects.filter(node=node, released_at=None).exists():
        return True
    seen = ObservedPod.objects.filter(cluster=node.cluster, node_name=node.name, gone_at=None)
    return seen.exclude(phase__in=TERMINAL).exists()
