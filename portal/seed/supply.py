"""The demo's clusters, read from the file that the demo wrote about the simulated clusters it started."""

import json
from collections.abc import Mapping
from pathlib import Path

import yaml
from django.db import transaction

from clusters.models import Cluster
from clusters.services.registration import Level, register_cluster, update_cluster
from portal.core.audit import SYSTEM

Entry = Mapping[str, str]


@transaction.atomic
def make_clusters(file: Path) -> list[Cluster]:
    """Register each simulated cluster of the file that is new; of a known one change what the demo chose anew."""
    entries: list[Entry] = json.loads(file.read_text())["clusters"]
    rows = Cluster.objects.filter(name__in=[entry["name"] for entry in entries], is_simulated=True)
    known = {cluster.name: cluster for cluster in rows}
    return [_current(entry, known.get(entry["name"])) for entry in entries]


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
    return register_cluster(
        actor=SYSTEM,
        name=entry["name"],
        kubeconfig=_kubeconfig(entry),
        exporter_url=_exporter(entry),
        levels=[Level(name, key) for name, key in topology],
        is_simulated=True,
    )


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
