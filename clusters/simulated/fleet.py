"""Fleet files: which nodes, namespaces, claims and priority classes a cluster starts with.

`python -m clusters.simulated.fleet --nodes 40 --out FILE` writes the demonstration mix under the file's name.

A fleet is a dict with these keys, all but `nodes` optional: `name`, `version`, `topology` (pairs of level name and
label key, widest first), `namespaces`, `claims` [{namespace, name, access_modes, storage}], `priority_classes`
[{name, value}], `quotas` [{namespace, name, hard}], `secrets` [{namespace, name, keys}] and `nodes`: single nodes
{name, product, gpus, resource, gpu_memory_mib, cpu, memory, labels, taints, allocatable_gpus} or groups of equal
nodes {count, prefix, zone, per_rack, per_block, ...} named `<prefix><number>`.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusters.simulated.api import Api
from clusters.simulated.nodes import node_conditions
from clusters.simulated.resources import (
    CLAIMS,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    QUOTAS,
    SECRETS,
    Obj,
    Resource,
)
from clusters.simulated.store import Store

Fleet = dict[str, Any]

_TOPOLOGY = [
    ["zone", "topology.kubernetes.io/zone"],
    ["block", "muster.example/block"],
    ["rack", "muster.example/rack"],
]
_KINDS = {
    "h100": {"product": "NVIDIA-H100-80GB-HBM3", "gpu_memory_mib": 81559, "cpu": "192", "memory": "2048Gi"},
    "a100": {"product": "NVIDIA-A100-SXM4-80GB", "gpu_memory_mib": 81920, "cpu": "128", "memory": "1024Gi"},
    "l40s": {"product": "NVIDIA-L40S", "gpu_memory_mib": 46068, "cpu": "96", "memory": "768Gi"},
}
# What each team of the demonstration finds in its namespace: the claims that samples and templates mount.
TEAM_NAMESPACES = ("team-vision", "team-speech", "team-platform")
CLAIM_SIZES = {"training-data": "10Ti", "model-checkpoints": "5Ti", "shared-data": "20Ti", "shared-checkpoints": "10Ti"}
_FAMILIES = {
    "H200": "hopper",
    "H100": "hopper",
    "A100": "ampere",
    "L40S": "ada-lovelace",
    "L4": "ada-lovelace",
}


def demo_fleets() -> list[Fleet]:
    """`sim-east` and `sim-west`: together 64 nodes and 512 GPUs."""
    return [mixed("sim-east", 32), mixed("sim-west", 32)]


def mixed(name: str, nodes: int) -> Fleet:
    """Half H100, a quarter A100 and the rest L40S nodes of eight GPUs, with the namespaces of the demonstration."""
    quarter = nodes // 4
    counts = {"h100": nodes - 2 * quarter, "a100": quarter, "l40s": quarter}
    shape = {"gpus": 8, "per_rack": 4, "per_block": 8}
    side = name.rpartition("-")[2]
    groups = [
        {"count": count, "prefix": f"{side}-{kind}-", "zone": f"{side}-{1 + (kind == 'l40s')}", **shape, **_KINDS[kind]}
        for kind, count in counts.items()
        if count
    ]
    return with_teams({"name": name, "topology": _TOPOLOGY, "nodes": groups})


def with_teams(fleet: Fleet) -> Fleet:
    """The fleet with the namespaces of the demonstration's teams and a shared claim of each name in every one."""
    claims = [
        {"namespace": namespace, "name": claim, "access_modes": ["ReadWriteMany"], "storage": size}
        for namespace in TEAM_NAMESPACES
        for claim, size in CLAIM_SIZES.items()
    ]
    return {**fleet, "namespaces": list(TEAM_NAMESPACES), "claims": claims}


def uniform(nodes: int, gpus: int, per_rack: int = 4, per_block: int = 16, **more: Any) -> Fleet:
    """Equal H100 nodes `node-0` ...; `more` overrides keys of the node group (product, cpu, memory ...)."""
    group = {
        "count": nodes,
        "prefix": "node-",
        "gpus": gpus,
        "product": "NVIDIA-H100-80GB-HBM3",
        "gpu_memory_mib": 81559,
        "cpu": "192",
        "memory": "2048Gi",
        "zone": "zone-1",
        "per_rack": per_rack,
        "per_block": per_block,
    }
    return {"name": "uniform", "topology": _TOPOLOGY, "nodes": [{**group, **more}]}


def expand(fleet: Fleet) -> Iterator[Fleet]:
    """Single nodes of a fleet; a group's racks and blocks are numbered within the group."""
    for entry in fleet.get("nodes") or ():
        if "count" not in entry:
            yield entry
            continue
        for number in range(entry["count"]):
            yield {
                **entry,
                "name": f"{entry['prefix']}{number}",
                "labels": _group_labels(fleet, entry, number),
            }


def populate(fleet: Fleet, store: Store, api: Api) -> None:
    """Creates what the fleet lists and the store does not hold yet; later edits of held objects stay."""
    for name in dict.fromkeys(["default", "kube-system", *(fleet.get("namespaces") or ())]):
        _ensure(api, NAMESPACES, "", {"metadata": {"name": name}})
    for entry in fleet.get("priority_classes") or ():
        body = {"metadata": {"name": entry["name"]}, "value": entry["value"]}
        body.update({key: entry[key] for key in ("globalDefault", "preemptionPolicy", "description") if key in entry})
        _ensure(api, PRIORITY_CLASSES, "", body)
    for claim in fleet.get("claims") or ():
        resources = {"requests": {"storage": claim.get("storage", "1Ti")}}
        spec = {"accessModes": claim.get("access_modes") or ["ReadWriteMany"], "resources": resources}
        _ensure(api, CLAIMS, claim["namespace"], {"metadata": {"name": claim["name"]}, "spec": spec})
    for quota in fleet.get("quotas") or ():
        _ensure(
            api,
            QUOTAS,
            quota["namespace"],
            {"metadata": {"name": quota["name"]}, "spec": {"hard": quota["hard"]}},
        )
    for secret in fleet.get("secrets") or ():
        body = {
            "metadata": {"name": secret["name"]},
            "type": "Opaque",
            "data": dict.fromkeys(secret.get("keys") or (), ""),
        }
        _ensure(api, SECRETS, secret["namespace"], body)
    for number, entry in enumerate(expand(fleet)):
        if store.get(NODES, "", entry["name"]) is None:
            _ensure(api, NODES, "", node_object(fleet, entry, number, api.clock.stamp()))


def node_object(fleet: Fleet, entry: Fleet, number: int, now: str) -> Obj:
    name, gpus = entry["name"], entry.get("gpus", 0)
    resource = entry.get("resource", "nvidia.com/gpu")
    capacity = {
        "cpu": str(entry.get("cpu", "96")),
        "memory": str(entry.get("memory", "1024Gi")),
        "ephemeral-storage": str(entry.get("storage", "3Ti")),
        "pods": str(entry.get("pods", 110)),
    }
    if gpus:
        capacity[resource] = str(gpus)
    allocatable = dict(capacity)
    if gpus:
        allocatable[resource] = str(entry.get("allocatable_gpus", gpus))
    spec: Obj = {"podCIDR": f"10.{200 + number // 256}.{number % 256}.0/24"}
    if entry.get("taints"):
        spec["taints"] = entry["taints"]
    return {
        "metadata": {"name": name, "labels": _node_labels(entry)},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": node_conditions(now),
            "addresses": [
                {"type": "InternalIP", "address": f"10.{10 + number // 250}.{number % 250}.10"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(fleet, name),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m clusters.simulated.fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--name", default="", help="of the cluster; else the file's name")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    fleet = mixed(arguments.name or arguments.out.stem, arguments.nodes)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(fleet, indent=2) + "\n")


def _ensure(api: Api, resource: Resource, namespace: str, body: Obj) -> None:
    if api.store.get(resource, namespace, body["metadata"]["name"]) is None:
        api.create(resource, namespace, body)


def _group_labels(fleet: Fleet, entry: Fleet, number: int) -> dict[str, str]:
    """A group's own labels, and zone, block and rack under the fleet's label keys."""
    keys = dict(fleet.get("topology") or _TOPOLOGY)
    base = entry["prefix"].strip("-")
    labels = dict(entry.get("labels") or {})
    if "zone" in entry and "zone" in keys:
        labels[keys["zone"]] = entry["zone"]
    for level in ("block", "rack"):
        if entry.get(f"per_{level}") and level in keys:
            labels[keys[level]] = f"{base}-{level}-{number // entry[f'per_{level}']}"
    return labels


def _node_labels(entry: Fleet) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": entry["name"],
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
    }
    product = entry.get("product", "")
    if entry.get("gpus") and entry.get("resource", "nvidia.com/gpu").startswith("nvidia.com/"):
        labels.update(
            {
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": product,
                "nvidia.com/gpu.count": str(entry["gpus"]),
                "nvidia.com/gpu.memory": str(entry.get("gpu_memory_mib", 0)),
                "nvidia.com/gpu.family": next(
                    (family for word, family in _FAMILIES.items() if word in product), "unknown"
                ),
                "nvidia.com/cuda.driver-version.full": "570.86.15",
                "nvidia.com/mig.strategy": "none",
            }
        )
    return {**labels, **(entry.get("labels") or {})}


def _node_info(fleet: Fleet, name: str) -> Obj:
    version = fleet.get("version") or "v1.36.3+simulated"
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "Ubuntu 24.04.2 LTS",
        "kernelVersion": "6.8.0-60-generic",
        "containerRuntimeVersion": "containerd://2.1.3",
        "kubeletVersion": version,
        "kubeProxyVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
    }


if __name__ == "__main__":
    main()
