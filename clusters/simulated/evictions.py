"""Deletes that the cluster itself decides: the eviction API and the taint manager."""

from clusters.simulated.api import Deletion
from clusters.simulated.resources import PODS, Obj
from clusters.simulated.world import World


def evict(world: World, namespace: str, name: str) -> None:
    """The eviction subresource; nothing here has a disruption budget."""
    pod = world.api.read(PODS, namespace, name)
    disrupt(world, pod, "EvictionByEvictionAPI", "Eviction API: evicting")


def disrupt(world: World, pod: Obj, reason: str, message: str) -> None:
    """Marks a pod with the DisruptionTarget condition and deletes it."""

    def mark(edited: Obj) -> None:
        conditions = edited["status"].setdefault("conditions", [])
        if any(condition["type"] == "DisruptionTarget" for condition in conditions):
            return
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": world.clock.stamp(),
            }
        )

    meta = pod["metadata"]
    world.api.change(PODS, pod, mark)
    world.api.delete(PODS, meta["namespace"], meta["name"], Deletion(uid=meta["uid"]))
