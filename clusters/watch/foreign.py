"""What pods that are not ours take from each node. Kept in memory: the streams bring it anew after a restart."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusters.watch.inventory import FlavorSelector
from clusters.watch.reading import ForeignPod
from clusters.watch.usage import PodUsage, mebibytes


@dataclass(frozen=True, slots=True)
class ForeignShare:
    """What others take from one node; `devices` by flavor id, without zeros."""

    cpu_milli: int = 0
    memory_mib: int = 0
    pods: int = 0
    devices: Mapping[int, int] = field(default_factory=dict)


class ForeignUsage:
    """Sums over bound pods that have not ended. Each change returns the names of the nodes that it touches."""

    def __init__(self) -> None:
        self._pods: dict[str, PodUsage] = {}
        self._by_node: dict[str, dict[str, PodUsage]] = {}

    def replace(self, pods: Iterable[ForeignPod]) -> set[str]:
        """Take the whole list of foreign pods."""
        touched = set(self._by_node)
        self._pods, self._by_node = {}, {}
        for pod in pods:
            touched |= self.put(pod)
        return touched

    def put(self, pod: ForeignPod) -> set[str]:
        """Take what one foreign pod says now."""
        uid, usage = pod.uid, pod.usage
        if self._pods.get(uid) == usage:
            return set()
        touched = self.drop(uid)
        if usage is not None:
            self._pods[uid] = usage
            self._by_node.setdefault(usage.node, {})[uid] = usage
            touched.add(usage.node)
        return touched

    def drop(self, uid: str) -> set[str]:
        """Forget one pod."""
        usage = self._pods.pop(uid, None)
        if usage is None:
            return set()
        here = self._by_node[usage.node]
        del here[uid]
        if not here:
            del self._by_node[usage.node]
        return {usage.node}

    def share(self, node: str, flavors: Iterable[FlavorSelector]) -> ForeignShare:
        """Return what foreign pods take from the node."""
        usages = self._by_node.get(node)
        if not usages:
            return ForeignShare()
        total: dict[str, int] = {}
        for usage in usages.values():
            for resource, amount in usage.amounts.items():
                total[resource] = total.get(resource, 0) + amount
        devices = {flavor.id: total.get(flavor.resource_name, 0) for flavor in flavors}
        return ForeignShare(
            cpu_milli=total.get("cpu", 0),
            memory_mib=mebibytes(total.get("memory", 0)),
            pods=len(usages),
            devices={flavor: count for flavor, count in devices.items() if count},
        )
