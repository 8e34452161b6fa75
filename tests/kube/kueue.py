"""Kueue beside a control plane of ours: its scheduler and its topology-aware scheduling, built from its own module.

It is the manager that Kueue measures itself with: no webhooks and no job integrations, so what it admits are Workload
objects. Its definitions of kinds come from the module, in the version that was built.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from portal.embedded.processes import end, has_ended, spawn
from tests.kube.admin import Json
from tests.kube.build import Wrapper, built, find_go
from tests.kube.fleet import LEVELS
from tests.kube.plane import ControlPlane

WRAPPER = Wrapper("kueue", {"minimalkueue": "sigs.k8s.io/kueue/test/performance/scheduler/minimalkueue"})
VERSION = "v0.17.0"
API = "kueue.x-k8s.io/v1beta2"
QUEUE = "bench"
_CRDS = Path("config/components/crd/bases")
_PATIENCE_S = 30.0


@contextmanager
def running_kueue(plane: ControlPlane, namespace: str, gpus: int) -> Iterator[None]:
    """Kueue with one queue in the namespace that may use `gpus` GPUs of the plane's H100 nodes."""
    binary = built(WRAPPER) / "minimalkueue"
    for file in sorted((_module() / _CRDS).glob("*.yaml")):
        plane.admin.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(file.read_text()))
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(plane.folder), "KUBECONFIG": str(plane.admin_kubeconfig)}
    log = plane.log_of("kueue")
    _wait_for_kinds(plane)
    process = spawn([str(binary), "--enableTAS"], log=log, env=env, cwd=plane.folder, death_signal=signal.SIGKILL)
    try:
        for path, body in _queues(namespace, gpus):
            plane.admin.apply(path, body)
        yield
        if has_ended(process):
            raise AssertionError(f"Kueue ended: {log.read_text(errors='replace')[-1500:]}")
    finally:
        end(process, by=signal.SIGTERM, timeout_s=5)


def workload(name: str, namespace: str, *, pods: int, topology: Json) -> Json:
    """What Kueue admits: so many pods with one GPU each."""
    container = {"name": "main", "image": "example.org/train:1", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container], "tolerations": [{"operator": "Exists"}]}
    sets = [{"name": "main", "count": pods, "topologyRequest": topology, "template": {"spec": pod}}]
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queueName": QUEUE, "active": True, "podSets": sets},
    }


def path_of_workloads(namespace: str) -> str:
    """Where Workloads are."""
    return f"/apis/{API}/namespaces/{namespace}/workloads"


def admitted_count(plane: ControlPlane) -> int:
    """How many Workloads the queue counts as admitted."""
    status, answer = plane.admin.request("GET", f"/apis/{API}/clusterqueues/{QUEUE}")
    assert status == 200, answer
    return int((answer.get("status") or {}).get("admittedWorkloads") or 0)


def admitted(plane: ControlPlane, namespace: str) -> int:
    """How many Workloads are admitted, each with a place for all of its pods."""
    status, answer = plane.admin.request("GET", path_of_workloads(namespace))
    assert status == 200, answer
    return sum(_has_place(item) for item in answer["items"])


def _has_place(item: Json) -> bool:
    sets = ((item.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()
    return bool(sets) and all(each.get("topologyAssignment") for each in sets)


def _queues(namespace: str, gpus: int) -> list[tuple[str, Json]]:
    keys = [{"nodeLabel": key} for _name, key in LEVELS] + [{"nodeLabel": "kubernetes.io/hostname"}]
    flavor = {
        "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "topologyName": QUEUE,
        "tolerations": [{"operator": "Exists"}],
    }
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": QUEUE, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]}],
    }
    queue = {"clusterQueue": QUEUE}
    whole, local = f"/apis/{API}", f"/apis/{API}/namespaces/{namespace}"
    return [
        (f"{whole}/topologies", _object("Topology", {"levels": keys})),
        (f"{whole}/resourceflavors", _object("ResourceFlavor", flavor)),
        (f"{whole}/clusterqueues", _object("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": [group]})),
        (f"{local}/localqueues", _object("LocalQueue", queue)),
    ]


def _object(kind: str, spec: Json) -> Json:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": QUEUE}, "spec": spec}


def _module() -> Path:
    """Where Go keeps the source of the module; it is fetched again if it has gone."""
    command = [find_go(), "mod", "download", "-json", f"sigs.k8s.io/kueue@{VERSION}"]
    done = subprocess.run(command, cwd=WRAPPER.folder, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def _wait_for_kinds(plane: ControlPlane) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s:
        status, answer = plane.admin.request("GET", f"/apis/{API}")
        if status == 200 and {"workloads", "topologies"} <= {each["name"] for each in answer["resources"]}:
            return
        time.sleep(0.2)
    raise AssertionError("the API server does not know Kueue's kinds")
