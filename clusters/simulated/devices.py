"""Which GPUs of a node a pod holds, as a device plug-in hands them out."""

from typing import Any

from clusters.simulated.quantities import pod_requests
from clusters.simulated.resources import Obj

_GPU_WORDS = ("gpu", "mig-")


class Devices:
    """GPU indexes by pod uid, lowest free first; a broken device is one beyond the allocatable count."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, list[int]]] = {}
        self._by_node: dict[str, dict[int, str]] = {}

    def allocate(self, node: str, pod: Obj, count: int) -> list[int]:
        uid = pod["metadata"]["uid"]
        if uid in self._held:
            return self._held[uid][1]
        taken = self._by_node.setdefault(node, {})
        free = (index for index in range(len(taken) + count) if index not in taken)
        indexes = [next(free) for _ in range(count)]
        self.restore(uid, node, indexes)
        return indexes

    def restore(self, uid: str, node: str, indexes: list[int]) -> None:
        self._held[uid] = (node, indexes)
        self._by_node.setdefault(node, {}).update(dict.fromkeys(indexes, uid))

    def release(self, uid: str) -> None:
        node, indexes = self._held.pop(uid, ("", []))
        for index in indexes:
            self._by_node[node].pop(index, None)

    def holders(self, node: str) -> dict[int, str]:
        """Pod uid by GPU index."""
        return self._by_node.get(node, {})

    def dump(self) -> dict[str, Any]:
        return {uid: [node, indexes] for uid, (node, indexes) in self._held.items()}


def gpu_count(amounts: dict[str, int]) -> int:
    """GPUs in a pod's requests or a node's capacity."""
    return sum(value // 1000 for name, value in amounts.items() if is_gpu(name))


def is_gpu(name: str) -> bool:
    return "/" in name and any(word in name.partition("/")[2] for word in _GPU_WORDS)


def pod_gpus(pod: Obj) -> int:
    return gpu_count(pod_requests(pod["spec"]))
