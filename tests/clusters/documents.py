"""Objects of the Kubernetes API as tests write them: whole enough to be read, small enough to be seen through."""

from typing import Any, TypeVar

import msgspec

Json = dict[str, Any]
DOMAIN = "muster.internal"
PRODUCT = "NVIDIA-H100-80GB-HBM3"
Shape = TypeVar("Shape")


def read_as(shape: type[Shape], body: Json) -> Shape:
    """What is read of a document when it comes as bytes."""
    return msgspec.json.decode(msgspec.json.encode(body), type=shape)


def node(name: str, *, uid: str = "", version: int = 1, gpus: int = 8, **changes: Any) -> Json:
    """A ready node of rack r1 with H100 GPUs; `labels`, `capacity`, `ready` and `cordoned` change it."""
    labels = {"nvidia.com/gpu.product": PRODUCT, "topology/rack": "r1"} | changes.get("labels", {})
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {key: value for key, value in labels.items() if value is not None},
        },
        "spec": {"unschedulable": True} if changes.get("cordoned") else {},
        "status": {
            "capacity": amounts | {"nvidia.com/gpu": str(changes.get("capacity", gpus))},
            "allocatable": amounts | {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True" if changes.get("ready", True) else "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.1"},
        },
    }


def pod(name: str, *, uid: str = "", version: int = 1, gpus: int = 0, **changes: Any) -> Json:
    """A pod of nobody's; `run` makes it ours, `node`, `phase`, `status`, `gates` and `labels` change it."""
    labels = dict(changes.get("labels", {}))
    if "run" in changes:
        labels |= {
            f"{DOMAIN}/installation": changes.get("installation", "default"),
            f"{DOMAIN}/run": changes["run"],
            f"{DOMAIN}/attempt": str(changes.get("attempt", 1)),
        }
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"cpu": "2", "memory": "4Gi"}}
    spec: Json = {"containers": [{"name": "main", "resources": resources}]}
    if "node" in changes:
        spec["nodeName"] = changes["node"]
    if "gates" in changes:
        spec["schedulingGates"] = [{"name": gate} for gate in changes["gates"]]
    return {
        "metadata": {
            "name": name,
            "namespace": changes.get("namespace", "team"),
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-12-01T10:00:00Z",
            "labels": labels,
            "annotations": changes.get("annotations", {}),
        },
        "spec": spec | changes.get("spec", {}),
        "status": {"phase": changes.get("phase", "Pending")} | changes.get("status", {}),
    }


def job(name: str, *, uid: str = "", version: int = 1, run: str = "r1", **changes: Any) -> Json:
    """A Job of ours; `status` and `suspend` change it."""
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {
                f"{DOMAIN}/installation": "default",
                f"{DOMAIN}/run": run,
                f"{DOMAIN}/attempt": "1",
            },
        },
        "spec": {"suspend": changes.get("suspend", False)},
        "status": changes.get("status", {}),
    }


def warning(about: str, reason: str, message: str, *, at: str = "2026-12-01T10:00:01Z", name: str = "e1") -> Json:
    """A Warning event about the object with that uid."""
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1"},
        "type": "Warning",
        "involvedObject": {"uid": about},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def claim(name: str, *, uid: str = "", **changes: Any) -> Json:
    """A bound volume claim that many nodes may mount."""
    return {
        "metadata": {"name": name, "namespace": "team", "uid": uid or f"uid-{name}", "resourceVersion": "1"},
        "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "nfs"} | changes,
        "status": {"phase": "Bound", "capacity": {"storage": "1Ti"}},
    }
