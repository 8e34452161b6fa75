"""Nodes for people: lists, one node with its checklist and timeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.utils.translation import gettext as _

from clusters.models import Cluster, GpuSample, Node, NodeAccelerator, NodeEvent, NodeFault, NodeMaintenance
from clusters.selectors.capacity import is_stale

# Labels by which the vendors' discovery says that a driver is loaded.
DRIVER_LABELS = (
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/cuda.driver.major",
    "amd.com/gpu.driver-version",
    "gpu.intel.com/driver-version",
)
# This many missed scrapes make an exporter silent.
_SILENT_SCRAPES = 3
_EVENTS = 100
_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a readiness checklist. `is_met` is None where it does not apply."""

    code: str
    title: str
    is_met: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """All that the page of a node shows."""

    node: Node
    accelerators: Sequence[NodeAccelerator]
    levels: Sequence[tuple[str, str]]
    checks: Sequence[Check]
    events: Sequence[NodeEvent]
    faults: Sequence[NodeFault]
    maintenance: NodeMaintenance | None
    exporter_heard_at: datetime | None


def nodes_of(cluster: Cluster) -> QuerySet[Node]:
    """Return the nodes that are there, with their GPUs at hand."""
    return all_nodes().filter(cluster=cluster).order_by("name")


def all_nodes() -> QuerySet[Node]:
    """Return the nodes that are there on all clusters, with cluster and GPUs at hand."""
    accelerators = Prefetch(
        "accelerators", NodeAccelerator.objects.select_related("flavor").order_by("flavor__rank", "flavor__name")
    )
    return Node.objects.filter(gone_at=None).select_related("cluster").prefetch_related(accelerators)


def node_detail(cluster_name: str, node_name: str, now: datetime) -> NodeDetail | None:
    """Return a node, also one that left; None if there never was one of that name."""
    heard = GpuSample.objects.filter(node_id=OuterRef("pk")).order_by("-at").values("at")[:1]
    # One row a level of its cluster, and one for a cluster without any: node, levels, exporter and faults in one query.
    rows = list(
        Node.objects.filter(cluster__name=cluster_name, name=node_name)
        .select_related("cluster")
        .annotate(
            heard_at=Subquery(heard),
            newest_faults=_newest_faults(),
            level_name=F("cluster__levels__name"),
            label_key=F("cluster__levels__label_key"),
        )
        .order_by("cluster__levels__depth")
    )
    if not rows:
        return None
    node, heard_at = rows[0], rows[0].heard_at
    levels = [(row.level_name, row.labels.get(row.label_key, "")) for row in rows if row.level_name is not None]
    accelerators = list(node.accelerators.select_related("flavor").order_by("flavor__rank", "flavor__name"))
    return NodeDetail(
        node=node,
        accelerators=accelerators,
        levels=levels,
        checks=[
            *_state_checks(node, now),
            *_gpu_checks(node, accelerators),
            *_other_checks(node, levels, heard_at, now),
        ],
        events=list(NodeEvent.objects.filter(node=node).order_by("-at", "-pk")[:_EVENTS]),
        faults=[_fault(one) for one in node.newest_faults],
        maintenance=_maintenance(node),
        exporter_heard_at=heard_at,
    )


def _state_checks(node: Node, now: datetime) -> list[Check]:
    return [
        Check("cluster", _("The cluster answers"), not is_stale(node.cluster, now), node.cluster.last_error),
        Check("present", _("The node is in the cluster"), node.gone_at is None),
        Check("ready", _("The node is ready"), node.is_ready, _condition_text(node.conditions.get("Ready"))),
        Check("whole_node", _("Nothing reports a fault that keeps work away"), not node.is_faulty),
        Check("trusted", _("The node is not quarantined"), node.quarantined_at is None, _quarantine_text(node)),
        Check("in_use", _("The node is not in maintenance"), node.maintenance_at is None),
        Check("open", _("The node is not cordoned"), not node.is_cordoned),
    ]


def _gpu_checks(node: Node, accelerators: Sequence[NodeAccelerator]) -> list[Check]:
    driver = next((node.labels[key] for key in DRIVER_LABELS if node.labels.get(key)), "")
    offered = [each for each in accelerators if each.allocatable]
    counts = ", ".join(
        _("%(working)d of %(built_in)d %(flavor)s")
        % {"working": each.allocatable, "built_in": each.capacity, "flavor": each.flavor.title}
        for each in accelerators
        if each.capacity
    )
    whole = all(each.allocatable >= each.capacity for each in accelerators) if accelerators else None
    return [
        Check("driver", _("A driver is loaded"), bool(driver), driver),
        Check("devices", _("The device plug-in offers GPUs of a known flavor"), bool(offered), counts),
        Check("whole", _("All built-in GPUs work"), whole, counts),
    ]


def _other_checks(
    node: Node, levels: Sequence[tuple[str, str]], heard_at: datetime | None, now: datetime
) -> list[Check]:
    missing = [name for name, value in levels if not value]
    since = now - timedelta(seconds=_SILENT_SCRAPES * settings.MUSTER_SCRAPE_S)
    is_heard = heard_at is not None and heard_at >= since
    return [
        Check("exporter", _("The GPU exporter is heard"), is_heard if node.cluster.exporter_url else None),
        Check(
            "topology",
            _("The labels of all topology levels are present"),
            not missing if levels else None,
            _("missing: %(levels)s") % {"levels": ", ".join(missing)} if missing else "",
        ),
    ]


def _newest_faults() -> ArraySubquery:
    rows = NodeFault.objects.filter(node=OuterRef("pk")).order_by("-detected_at", "-pk")
    names = ("kind", "subject", "detail", "detected_at", "cleared_at")
    return ArraySubquery(rows.values_list(JSONObject(**{name: name for name in names}))[:_FAULTS])


def _fault(one: dict[str, Any]) -> NodeFault:
    """A fault as it came beside its node; JSON knows no moments."""
    moments = {name: one[name] and datetime.fromisoformat(one[name]) for name in ("detected_at", "cleared_at")}
    return NodeFault(**{**one, **moments})


def _maintenance(node: Node) -> NodeMaintenance | None:
    return NodeMaintenance.objects.filter(node=node, ended_at=None).first() if node.maintenance_at else None


def _quarantine_text(node: Node) -> str:
    return " - ".join(filter(None, (node.quarantined_by, node.quarantine_reason)))


def _condition_text(condition: Mapping[str, str] | None) -> str:
    return (condition or {}).get("reason", "")
