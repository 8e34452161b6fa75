"""What the API server checks at create against other objects: namespaces, priority classes, quotas."""

from clusters.simulated.defaults import qos_class
from clusters.simulated.errors import forbidden, not_found, terminating
from clusters.simulated.quantities import Amounts, add, is_extended, parse_quantity, pod_requests, show
from clusters.simulated.resources import (
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    QUOTAS,
    RESOURCES,
    RUNTIME_CLASSES,
    Obj,
    Resource,
)
from clusters.simulated.store import Change, Store, copy_of

_TERMINAL = ("Succeeded", "Failed")
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class Usage:
    """What pods that have not ended ask for, by namespace and by node; follows the store's changes."""

    def __init__(self, store: Store) -> None:
        self.by_namespace: dict[str, Amounts] = {}
        self.by_node: dict[str, Amounts] = {}
        self._charged: dict[str, tuple[str, str, Amounts]] = {}
        for stored in store.all(PODS):
            self._charge(stored.object)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.resource is not PODS:
            return
        if change.previous:
            self._discharge(change.previous.object["metadata"]["uid"])
        if change.type != "DELETED":
            self._charge(change.object)

    def _charge(self, pod: Obj) -> None:
        if pod["status"].get("phase") in _TERMINAL:
            return
        namespace, node = pod["metadata"]["namespace"], pod["spec"].get("nodeName") or ""
        wanted = {**pod_requests(pod["spec"]), "pods": 1000}
        self._charged[pod["metadata"]["uid"]] = (namespace, node, wanted)
        add(self.by_namespace.setdefault(namespace, {}), wanted)
        if node:
            add(self.by_node.setdefault(node, {}), wanted)

    def _discharge(self, uid: str) -> None:
        namespace, node, held = self._charged.pop(uid, ("", "", {}))
        if not held:
            return
        add(self.by_namespace[namespace], held, -1)
        if node:
            add(self.by_node[node], held, -1)


def admit_to_namespace(store: Store, resource: Resource, namespace: str, name: str) -> None:
    held = store.get(NAMESPACES, "", namespace)
    if held is None:
        raise not_found(NAMESPACES, namespace)
    if held["metadata"].get("deletionTimestamp"):
        raise terminating(resource, name, namespace)


def resolve_priority(store: Store, pod: Obj) -> None:
    """Sets `spec.priority` and the preemption policy from the class; an unknown class is refused."""
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    if name in _SYSTEM_PRIORITIES:
        spec["priority"] = _SYSTEM_PRIORITIES[name]
        return
    found = store.get(PRIORITY_CLASSES, "", name) if name else _default_class(store)
    if found is None and name:
        raise forbidden(PODS, pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
    spec["priority"] = found["value"] if found else 0
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
        spec["preemptionPolicy"] = found["preemptionPolicy"]


def resolve_runtime(store: Store, pod: Obj) -> None:
    """Sets the overhead of the pod's runtime class; an unknown class is refused."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = store.get(RUNTIME_CLASSES, "", name)
    if found is None:
        raise forbidden(PODS, pod["metadata"]["name"], f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead:
        spec["overhead"] = copy_of(overhead)


def fill_in_requests(store: Store, pod: Obj) -> None:
    """Sets what a container does not ask for to the default request of the namespace's limit ranges.

    Their other fields (default limits, least, most, ratios) are stored and have no effect.
    """
    namespace = pod["metadata"]["namespace"]
    for stored in store.all(LIMIT_RANGES):
        if stored.object["metadata"]["namespace"] != namespace:
            continue
        for item in stored.object["spec"].get("limits") or ():
            if item.get("type") == "Container":
                for container in (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]:
                    resources = container["resources"]
                    asked = {**(item.get("defaultRequest") or {}), **(resources.get("requests") or {})}
                    if asked:
                        resources["requests"] = asked
            pod["status"]["qosClass"] = qos_class(pod["spec"])


def check_quotas(store: Store, usage: Usage, resource: Resource, obj: Obj) -> None:
    """Raises the real server's 403 where one quota of the namespace would be exceeded."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    for stored in store.all(QUOTAS):
        quota = stored.object
        if quota["metadata"]["namespace"] == namespace:
            refused = _refusal(store, usage, resource, obj, quota)
            if refused:
                raise forbidden(resource, name, refused)


def refresh_quotas(store: Store, usage: Usage, namespace: str) -> None:
    """Writes `status.hard` and `status.used` of a namespace's quotas where they changed."""
    for stored in store.all(QUOTAS):
        quota = stored.object
        if quota["metadata"]["namespace"] != namespace:
            continue
        hard = quota["spec"].get("hard") or {}
        status = {"hard": hard, "used": {key: show(_used(store, usage, namespace, key)) for key in hard}}
        if quota.get("status") != status:
            store.put(QUOTAS, {**copy_of(quota), "status": status})


def _default_class(store: Store) -> Obj | None:
    defaults = [each.object for each in store.all(PRIORITY_CLASSES) if each.object.get("globalDefault")]
    return max(defaults, key=lambda each: int(each["value"]), default=None)


def _refusal(store: Store, usage: Usage, resource: Resource, obj: Obj, quota: Obj) -> str:
    hard = {key: parse_quantity(value) for key, value in (quota["spec"].get("hard") or {}).items()}
    asked = _asked(resource, obj)
    name = quota["metadata"]["name"]
    missing = _unnamed(hard, obj) if resource is PODS else ""
    if missing:
        return f"failed quota: {name}: must specify {missing}"
    namespace = obj["metadata"]["namespace"]
    wanted = {key: asked[key] for key in sorted(hard) if asked.get(key)}
    used = {key: _used(store, usage, namespace, key) for key in wanted}
    over = [key for key in wanted if used[key] + wanted[key] > hard[key]]
    if not over:
        return ""
    parts = ("requested", wanted), ("used", used), ("limited", hard)
    shown = ", ".join(f"{word}: " + ",".join(f"{key}={show(values[key])}" for key in over) for word, values in parts)
    return f"exceeded quota: {name}, {shown}"


def _asked(resource: Resource, obj: Obj) -> Amounts:
    asked: Amounts = {f"count/{resource.qualified}": 1000, resource.plural: 1000}
    if resource is PODS:
        requests = pod_requests(obj["spec"])
        for key, value in requests.items():
            asked[f"requests.{key}"] = value
            if not is_extended(key):
                asked[key] = value
        for key, value in pod_requests(obj["spec"], "limits").items():
            asked[f"limits.{key}"] = value
    return asked


def _unnamed(hard: Amounts, pod: Obj) -> str:
    """Compute resources that a quota limits and a container does not name, as the real text lists them."""
    missing: set[str] = set()
    for container in pod["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        for section in ("requests", "limits"):
            for name in ("cpu", "memory"):
                key = f"{section}.{name}"
                if key in hard and name not in (resources.get(section) or {}):
                    missing.add(f"{key} for: {container['name']}")
    return "; ".join(sorted(missing))


def _used(store: Store, usage: Usage, namespace: str, key: str) -> int:
    if key.startswith("count/"):
        counted = [r for r in RESOURCES if r.qualified == key.removeprefix("count/")]
        return 1000 * store.count(counted[0], namespace) if counted else 0
    plain = key.removeprefix("requests.")
    if key.startswith("limits."):
        pods = (each.object for each in store.all(PODS) if each.object["metadata"]["namespace"] == namespace)
        live = (pod for pod in pods if pod["status"].get("phase") not in _TERMINAL)
        return sum(pod_requests(pod["spec"], "limits").get(key.removeprefix("limits."), 0) for pod in live)
    by_plural = [r for r in RESOURCES if r.plural == key and r is not PODS]
    if by_plural:
        return 1000 * store.count(by_plural[0], namespace)
    return usage.by_namespace.get(namespace, {}).get(plain, 0)
