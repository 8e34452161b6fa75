"""One cluster per module, and a namespace of its own for every test."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.simulated.fleet import uniform
from tests.clusters_running import JSON_PATCH, SimulatedCluster, running_cluster

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Corner:
    """A namespace of a running cluster, with short words for what tests do all the time."""

    cluster: SimulatedCluster
    namespace: str

    def path(self, plural: str, name: str = "") -> str:
        groups = {"jobs": "/apis/batch/v1", "cronjobs": "/apis/batch/v1"}
        groups |= dict.fromkeys(("deployments", "replicasets", "statefulsets"), "/apis/apps/v1")
        base = f"{groups.get(plural, '/api/v1')}/namespaces/{self.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    def create(self, plural: str, body: dict[str, Any]) -> dict[str, Any]:
        code, answer = self.cluster.request("POST", self.path(plural), body)
        assert code == 201, answer
        return dict(answer)

    def get(self, plural: str, name: str) -> dict[str, Any]:
        code, answer = self.cluster.request("GET", self.path(plural, name))
        assert code == 200, answer
        return dict(answer)

    def items(self, plural: str, query: str = "") -> list[dict[str, Any]]:
        code, answer = self.cluster.request("GET", f"{self.path(plural)}?{query}")
        assert code == 200, answer
        return list(answer["items"] or ())

    def patch(self, plural: str, name: str, operations: list[dict[str, Any]]) -> tuple[int, Any]:
        return self.cluster.request("PATCH", self.path(plural, name), operations, kind=JSON_PATCH)

    def phases(self, query: str = "") -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.items("pods", query))

    def condition(self, plural: str, name: str, kind: str) -> dict[str, Any]:
        """The condition of that type; empty if there is none."""
        held = self.get(plural, name)["status"].get("conditions") or []
        return next((each for each in held if each["type"] == kind), {})

    def events(self, reason: str) -> list[str]:
        return [each["message"] for each in self.items("events", f"fieldSelector=reason={reason}")]

    def wait_phases(self, wanted: list[str], timeout_s: float = 10.0) -> None:
        self.cluster.wait_for(lambda: self.phases() == wanted, f"{wanted}, have {self.phases()}", timeout_s)

    def wait_condition(self, name: str, kind: str, plural: str = "jobs") -> dict[str, Any]:
        def probe() -> dict[str, Any]:
            held = self.condition(plural, name, kind)
            return held if held.get("status") == "True" else {}

        return self.cluster.wait_for(probe, f"{kind} of {name}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimulatedCluster]:
    """Four nodes of eight GPUs, twenty times as fast as the world."""
    with running_cluster(uniform(nodes=4, gpus=8, per_rack=2, per_block=4), clock=20, pull_s=0.2) as running:
        yield running


@pytest.fixture
def corner(cluster: SimulatedCluster) -> Iterator[Corner]:
    """Cleaned up afterwards, so that no test finds the GPUs of another one taken."""
    name = f"team-{next(_numbers)}"
    code, _ = cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert code == 201
    yield Corner(cluster, name)
    cluster.request("DELETE", f"/api/v1/namespaces/{name}")
    path = f"/api/v1/namespaces/{name}"
    cluster.wait_for(lambda: cluster.request("GET", path)[0] == 404, f"namespace {name} to go")


def pod_spec(gpus: int = 1, env: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "4", "memory": "16Gi"}},
    }
    return {"containers": [container], "restartPolicy": "Never", **more}


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": pod_spec(**more)}


def job(name: str, workers: int = 1, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An Indexed Job; `more` goes to the pod spec, `spec` to the Job's."""
    base = {"completionMode": "Indexed", "completions": workers, "parallelism": workers, "backoffLimit": 0}
    return {
        "metadata": {"name": name},
        "spec": {
            **base,
            "template": {"metadata": {"labels": {"job": name}}, "spec": pod_spec(**more)},
            **(spec or {}),
        },
    }


GATE: dict[str, Any] = {"schedulingGates": [{"name": "example.com/placement"}]}


def pin(node: str) -> dict[str, Any]:
    """Required node affinity for one node by its name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def release(pod: dict[str, Any], node: str) -> list[dict[str, Any]]:
    """The JSON patch that pins a gated pod and opens its gate in one step."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE["schedulingGates"][0]["name"]},
        {"op": "add", "path": "/spec/affinity", "value": pin(node)},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
