"""The demo's clusters, read from the files about those that it started: simulated ones, and real control planes."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

import yaml
from django.db import transaction

from clusters.models import Cluster
from clusters.services.registration import Level, register_cluster, update_cluster
from portal.core.audit import SYSTEM
from quotas.models import Guard
from quotas.sync.wishes import ask_to_apply_all, keep_spaces, set_guard

Entry = Mapping[str, str]


class Plane(TypedDict):
    """A control plane: where the portal's kubeconfig is, and its levels (name and label), widest first."""

    name: str
    kubeconfig: str
    levels: list[list[str]]


@transaction.atomic
def make_clusters(file: Path, kube: Path | None = None) -> list[Cluster]:
    """Register each cluster of the files that is new; of a known one change what the demo chose anew.

    A control plane lives as long as its demo. One of an earlier start is another now and gets a new kubeconfig, or is
    not there and takes no part.
    """
    entries: list[Entry] = json.loads(file.read_text())["clusters"]
    planes: list[Plane] = json.loads(kube.read_text())["clusters"] if kube else []
    rows = list(Cluster.objects.filter(is_simulated=True))
    simulated = {cluster.name: cluster for cluster in rows if not cluster.has_fake_nodes}
    real = {cluster.name: cluster for cluster in rows if cluster.has_fake_nodes}
    _leave_out(real[name] for name in real.keys() - {plane["name"] for plane in planes})
    return [
        *(_current(entry, simulated.get(entry["name"])) for entry in entries),
        *(_current_plane(plane, real.get(plane["name"])) for plane in planes),
    ]


def _leave_out(clusters: Iterable[Cluster]) -> None:
    for cluster in clusters:
        if cluster.is_enabled:
            update_cluster(actor=SYSTEM, cluster=cluster, version=cluster.version, is_enabled=False)


def _current_plane(plane: Plane, cluster: Cluster | None) -> Cluster:
    kubeconfig = Path(plane["kubeconfig"]).read_text()
    if cluster is not None:
        return update_cluster(
            actor=SYSTEM, cluster=cluster, version=cluster.version, kubeconfig=kubeconfig, is_enabled=True
        )
    made = register_cluster(
        actor=SYSTEM,
        name=plane["name"],
        kubeconfig=kubeconfig,
        levels=[Level(name, key) for name, key in plane["levels"]],
        simulation="nodes",
    )
    keep_spaces(actor=SYSTEM, cluster=made, is_kept=True, version=1)
    set_guard(actor=SYSTEM, cluster=made, guard=Guard.DENY, version=2)
    return made


def _current(entry: Entry, cluster: Cluster | None) -> Cluster:
    if cluster is None:
        return _register(entry)
    if (cluster.server, cluster.token) == (entry["server"], entry["token"]):
        return cluster
    return update_cluster(
        actor=SYSTEM,
        cluster=cluster,
        version=cluster.version,
        kubeconfig=_kubeconfig(entry),
        exporter_url=_exporter(entry),
    )


def _register(entry: Entry) -> Cluster:
    topology = json.loads(Path(entry["fleet"]).read_text())["topology"]
    cluster = register_cluster(
        actor=SYSTEM,
        name=entry["name"],
        kubeconfig=_kubeconfig(entry),
        exporter_url=_exporter(entry),
        levels=[Level(name, key) for name, key in topology],
        simulation="whole",
    )
    _keep_spaces(cluster)
    return cluster


def _keep_spaces(cluster: Cluster) -> None:
    """As an administrator would: keep them, and adopt the namespaces that the simulated cluster was started with."""
    keep_spaces(actor=SYSTEM, cluster=cluster, is_kept=True, version=1)
    ask_to_apply_all(actor=SYSTEM, cluster=cluster)


def _exporter(entry: Entry) -> str:
    return f"{entry['server']}/exporter/{{node}}/metrics"


def _kubeconfig(entry: Entry) -> str:
    name = entry["name"]
    return yaml.safe_dump(
        {
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": {"server": entry["server"]}}],
            "users": [{"name": name, "user": {"token": entry["token"]}}],
        }
    )
