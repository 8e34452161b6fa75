"""The demo's clusters, read from the file that the demo wrote about the simulated clusters it started."""

import json
from pathlib import Path

from django.db import transaction

from clusters.models import Cluster, TopologyLevel


@transaction.atomic
def make_clusters(file: Path) -> list[Cluster]:
    """Register each simulated cluster of the file, or bring its address and token up to date."""
    return [_make_cluster(entry) for entry in json.loads(file.read_text())["clusters"]]


def _make_cluster(entry: dict[str, str]) -> Cluster:
    values = {
        "server": entry["server"],
        "token": entry["token"],
        "exporter_url": f"{entry['server']}/exporter/{{node}}/metrics",
        "is_simulated": True,
    }
    cluster, _made = Cluster.objects.update_or_create(name=entry["name"], defaults=values)
    for depth, (name, key) in enumerate(json.loads(Path(entry["fleet"]).read_text())["topology"]):
        TopologyLevel.objects.update_or_create(cluster=cluster, depth=depth, defaults={"name": name, "label_key": key})
    return cluster
