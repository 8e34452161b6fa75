"""The objects that the contract is tried on, in the shape that the portal sends."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.contract.conftest import Server

T = TypeVar("T")
Json = dict[str, Any]
GATE = "muster.internal/placement"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(name: str, *, workers: int = 2, suspend: bool = True, gated: bool = True) -> Json:
    """An Indexed Job whose pods wait at a gate; `run` is its name."""
    labels = {"run": name}
    spec: Json = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        # GPU nodes are tainted, and the portal's pods tolerate that.
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "example.org/train:1", "resources": {"limits": {"cpu": "1"}}}],
    }
    if gated:
        spec["schedulingGates"] = [{"name": GATE}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "suspend": suspend,
            "completionMode": "Indexed",
            "completions": workers,
            "parallelism": workers,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def unsuspend(uid: str) -> list[Json]:
    """Open a suspended Job."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]


def release(pod: Json, node: str) -> list[Json]:
    """Pin a gated pod to a node and take the gate away, in one step."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": required}},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]


def pods_of(server: Server, run: str) -> list[Json]:
    """The pods of a Job, by rank."""
    items = server.gateway.list("pods", server.namespace, labels=f"run={run}")["items"]
    return sorted(items, key=lambda pod: int(pod["metadata"]["labels"][INDEX]))


def opened(server: Server, name: str, *, workers: int = 2) -> list[Json]:
    """Create a Job, open it and return its pods once all of them stand at the gate."""
    created = server.gateway.create("jobs", server.namespace, job(name, workers=workers))
    server.gateway.patch_json("jobs", server.namespace, name, unsuspend(created["metadata"]["uid"]))
    return wait_for(lambda: _all(pods_of(server, name), workers), "all pods at the gate")


def wait_for(probe: Callable[[], T | None], what: str, timeout_s: float = 20.0) -> T:
    """The first answer of the probe that is true."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := probe():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s:.0f} s: {what}")


def _all(pods: list[Json], workers: int) -> list[Json] | None:
    return pods if len(pods) == workers else None
