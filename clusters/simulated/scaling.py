"""The `scale` subresource of Deployments and ReplicaSets."""

from typing import Any

from clusters.simulated.api import Api
from clusters.simulated.errors import bad_request
from clusters.simulated.patch import MERGE_PATCH, apply_patch
from clusters.simulated.resources import Obj, Resource
from clusters.simulated.store import Key


def read_scale(api: Api, resource: Resource, key: Key) -> Obj:
    obj = api.read(resource, *key)
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = (obj["spec"].get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: meta[field] for field in kept},
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {"replicas": (obj.get("status") or {}).get("replicas", 0), "selector": selector},
    }


def write_scale(api: Api, resource: Resource, key: Key, patch: tuple[str, Any], *, dry_run: bool) -> Obj:
    """Patches the Scale object, then sets the replicas of the object behind it."""
    scale = apply_patch(patch[0], read_scale(api, resource, key), patch[1])
    replicas = (scale.get("spec") or {}).get("replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("Scale in version v1 cannot be handled as a Scale: spec.replicas must be an integer")
    change: dict[str, Any] = {"spec": {"replicas": replicas}}
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version:
        change["metadata"] = {"resourceVersion": version}
    stored = api.patch(resource, key, (MERGE_PATCH, change), dry_run=dry_run)
    return {**read_scale(api, resource, key), "spec": {"replicas": stored["spec"]["replicas"]}}
