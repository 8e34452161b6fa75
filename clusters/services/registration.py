"""Register clusters, and change what the portal knows of the way to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from clusters.k8s import kubeconfig as kubeconfigs
from clusters.k8s.connection import AddressRefusedError, check_url
from clusters.models import Cluster, TopologyLevel
from clusters.services.labels import is_label_key
from portal.core.audit import Actor, Target, record
from portal.core.errors import InvalidInputError, StaleEditError

MAX_LEVELS = 15
NODE_LEVEL = "node"  # the last level of every cluster; it needs no label
Simulation = Literal["none", "whole", "nodes"]
_PLACEHOLDERS = {"{node}": "node", "{address}": "192.0.2.1"}


@dataclass(frozen=True, slots=True)
class Level:
    """A topology level as an administrator gives it: its name, and the label that tells its domains apart."""

    name: str
    label_key: str


@transaction.atomic
def register_cluster(
    *,
    actor: Actor,
    name: str,
    kubeconfig: str,
    exporter_url: str = "",
    levels: Sequence[Level] = (),
    simulation: Simulation = "none",
) -> Cluster:
    """Register a cluster by a kubeconfig, of which only server, certificate authority and token are kept.

    Levels are given widest first. `simulation` says what of it is not real, for people to read.
    Raise InvalidInputError that names each refused field.
    """
    connection = kubeconfigs.parse(kubeconfig)
    _check_exporter(exporter_url)
    _check_levels(levels)
    cluster = Cluster(
        name=name,
        server=connection.server,
        ca_data=connection.ca_data,
        token=connection.token,
        exporter_url=exporter_url,
        is_simulated=simulation != "none",
        has_fake_nodes=simulation == "nodes",
    )
    _clean(cluster)
    cluster.save()
    _write_levels(cluster, levels)
    record(actor, "cluster.registered", target_of(cluster), after={**_shown(cluster), "levels": _named(levels)})
    return cluster


@transaction.atomic
def update_cluster(
    *,
    actor: Actor,
    cluster: Cluster,
    version: int,
    kubeconfig: str = "",
    exporter_url: str | None = None,
    is_enabled: bool | None = None,
) -> Cluster:
    """Change what is given; an empty kubeconfig keeps address and token. A disabled cluster is not watched.

    Raise InvalidInputError, and StaleEditError when the cluster is not at `version` any more.
    """
    current = _locked(cluster, version)
    before = _shown(current)
    if kubeconfig:
        connection = kubeconfigs.parse(kubeconfig)
        current.server, current.ca_data, current.token = connection.server, connection.ca_data, connection.token
    if exporter_url is not None:
        _check_exporter(exporter_url)
        current.exporter_url = exporter_url
    if is_enabled is not None:
        current.is_enabled = is_enabled
    current.version += 1
    _clean(current)
    # Not the watcher's columns: it writes them all the time.
    current.save(update_fields=["server", "ca_data", "token", "exporter_url", "is_enabled", "version", "updated_at"])
    changed = {key: value for key, value in _shown(current).items() if before[key] != value}
    after = changed | ({"token": "replaced"} if kubeconfig else {})
    record(actor, "cluster.updated", target_of(current), before={key: before[key] for key in changed}, after=after)
    return current


@transaction.atomic
def set_levels(*, actor: Actor, cluster: Cluster, version: int, levels: Sequence[Level]) -> Cluster:
    """Replace the topology levels, widest first. Running jobs stay where they are: only new places change.

    Raise InvalidInputError, and StaleEditError when the cluster is not at `version` any more.
    """
    _check_levels(levels)
    current = _locked(cluster, version)
    before = [Level(level.name, level.label_key) for level in current.levels.all()]
    current.levels.all().delete()
    _write_levels(current, levels)
    current.version += 1
    current.save(update_fields=["version", "updated_at"])
    record(
        actor,
        "cluster.levels_set",
        target_of(current),
        before={"levels": _named(before)},
        after={"levels": _named(levels)},
    )
    return current


def _locked(cluster: Cluster, version: int) -> Cluster:
    current = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    if current.version != version:
        raise StaleEditError(numbers={"yours": version, "current": current.version})
    return current


def _check_exporter(url: str) -> None:
    if not url:
        return
    filled = url
    for placeholder, example in _PLACEHOLDERS.items():
        filled = filled.replace(placeholder, example)
    try:
        check_url(filled)
    except AddressRefusedError as error:
        raise InvalidInputError({"exporter_url": [str(error)]}) from None
    if "{" in filled or "}" in filled:
        raise InvalidInputError({"exporter_url": [_("Only {node} and {address} are filled in.")]})


def _check_levels(levels: Sequence[Level]) -> None:
    problems = []
    if len(levels) > MAX_LEVELS:
        problems.append(
            _("%(count)d levels; at most %(limit)d fit above the node.") % {"count": len(levels), "limit": MAX_LEVELS}
        )
    for level in levels:
        if not level.name or len(level.name) > 20 or level.name == NODE_LEVEL:
            problems.append(
                _("%(name)s: a level's name has 1 to 20 characters and is not “node”.")
                % {"name": repr(level.name[:40])}
            )
        if not is_label_key(level.label_key):
            problems.append(_("%(key)s is not the key of a label.") % {"key": repr(level.label_key[:80])})
    for what in ("name", "label_key"):
        values = [getattr(level, what) for level in levels]
        if len(set(values)) != len(values):
            problems.append(_("Each level needs a name and a label of its own."))
    if problems:
        raise InvalidInputError({"levels": problems})


def _write_levels(cluster: Cluster, levels: Sequence[Level]) -> None:
    TopologyLevel.objects.bulk_create(
        TopologyLevel(cluster=cluster, depth=depth, name=level.name, label_key=level.label_key)
        for depth, level in enumerate(levels)
    )


def _clean(cluster: Cluster) -> None:
    try:
        cluster.full_clean(exclude=["token", "heard_at", "synced_at", "probe_asked_at", "probed_at"])
    except ValidationError as error:
        raise InvalidInputError(error.message_dict) from None


def _shown(cluster: Cluster) -> Mapping[str, object]:
    return {
        "name": cluster.name,
        "server": cluster.server,
        "exporter_url": cluster.exporter_url,
        "is_enabled": cluster.is_enabled,
    }


def _named(levels: Sequence[Level]) -> list[list[str]]:
    return [[level.name, level.label_key] for level in levels]


def target_of(cluster: Cluster) -> Target:
    """Return the cluster as the audit log names it."""
    return Target(type="cluster", id=str(cluster.pk), label=cluster.name)
