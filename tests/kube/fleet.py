"""What a control plane of ours is furnished with: fake GPU nodes, the namespaces of teams, volumes and rights."""

from typing import Any

from clusters.manifests import rights
from clusters.simulated.fleet import expand, mixed, node_object

Json = dict[str, Any]

TEAMS = ("team-vision", "team-speech", "team-platform")
# Widest first, as the portal takes them when a cluster is registered.
LEVELS = (
    ("zone", "topology.kubernetes.io/zone"),
    ("block", "muster.example/block"),
    ("rack", "muster.example/rack"),
)
CLAIMS = {"training-data": "10Ti", "model-checkpoints": "5Ti"}
PRIORITY_CLASSES = {"low": 100, "normal": 1_000, "high": 10_000}
_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
_MIG = "nvidia.com/mig-1g.10gb"
_MIG_PRODUCT = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"


def furniture(name: str, nodes: int) -> list[Json]:
    """Every object, in the order in which it can be created."""
    return [
        *(_namespace(team) for team in TEAMS),
        *rights.objects(TEAMS),
        *(_priority_class(each, value) for each, value in PRIORITY_CLASSES.items()),
        *(each for team in TEAMS for claim, size in CLAIMS.items() for each in _volume(team, claim, size)),
        *gpu_nodes(name, nodes),
    ]


def gpu_nodes(name: str, nodes: int) -> list[Json]:
    """The demonstration's mix of H100, A100 and L40S nodes in racks of four, and from eight on one cut by MIG."""
    fleet = mixed(name, nodes - 1 if nodes >= 8 else nodes)
    entries = [*expand(fleet), *([_mig_node(name)] if nodes >= 8 else [])]
    return [_node(node_object(fleet, entry, number, "")) for number, entry in enumerate(entries)]


def _node(made: Json) -> Json:
    # Ready it becomes by KWOK, which also answers for its kubelet.
    address = [
        {"type": "InternalIP", "address": "127.0.0.1"},
        {"type": "Hostname", "address": made["metadata"]["name"]},
    ]
    kept = ("capacity", "allocatable", "nodeInfo")
    status = {key: made["status"][key] for key in kept} | {"addresses": address}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": made["metadata"],
        "spec": {"taints": [_TAINT]},
        "status": status,
    }


def _mig_node(name: str) -> Json:
    side = name.rpartition("-")[2]
    labels = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.config.state": "success",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "8",
        f"{_MIG}.count": "56",
        f"{_MIG}.product": _MIG_PRODUCT,
        f"{_MIG}.memory": "9856",
        f"{_MIG}.replicas": "1",
        "topology.kubernetes.io/zone": f"{side}-1",
        "muster.example/block": f"{side}-mig-block-0",
        "muster.example/rack": f"{side}-mig-rack-0",
    }
    return {"name": f"{side}-mig-0", "resource": _MIG, "gpus": 56, "cpu": "128", "memory": "1024Gi", "labels": labels}


def _namespace(name: str) -> Json:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _priority_class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",  # the portal preempts, not kube-scheduler
    }


def _volume(namespace: str, claim: str, size: str) -> list[Json]:
    """A claim, and the volume that it is bound to: without one kube-scheduler would not place the pods."""
    modes, name = ["ReadWriteMany"], f"{namespace}-{claim}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": modes,
                "capacity": {"storage": size},
                "claimRef": {"namespace": namespace, "name": claim},
                "nfs": {"server": "127.0.0.1", "path": f"/{name}"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": namespace, "name": claim},
            "spec": {
                "accessModes": modes,
                "resources": {"requests": {"storage": size}},
                "storageClassName": "",
                "volumeName": name,
            },
        },
    ]
