"""The map of a cluster: its levels from wide to narrow, its nodes, and one cell for each GPU."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, Q

from clusters.models import NEEDS_LOOK, Cluster, Node, TopologyLevel, closed_nodes

Natural = tuple[tuple[int, str], ...]
_NUMBERS = re.compile(r"([0-9]+)")


class CellState(StrEnum):
    """What a GPU is doing, or why it does nothing."""

    USED = "used"
    FOREIGN = "foreign"
    FREE = "free"
    CORDONED = "cordoned"
    NOT_READY = "not_ready"
    BROKEN = "broken"  # built in, but the device plug-in no longer offers it


class Holder(NamedTuple):
    """Who holds a part of a node, for the floor above to say: what to write, where it leads, and how much it is.

    An empty `url`: the person may not see it. `run` is the label of its pods, by which measurements find it; it is
    not for people. CPU in thousandths of a core, memory in MiB.
    """

    label: str
    url: str
    gpus: int
    run: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0
    pods: int = 0


class Share(NamedTuple):
    """How many GPUs of one flavor a node has, can give, gives to others, and holds for us."""

    flavor: str
    capacity: int
    allocatable: int
    foreign: int
    held: int


class NodeShares(NamedTuple):
    """One node and its GPUs as the map reads them."""

    id: int
    name: str
    labels: Mapping[str, str]
    is_ready: bool
    is_closed: bool
    needs_look: bool
    shares: Sequence[Share]


@dataclass(frozen=True, slots=True)
class GpuCell:
    """One GPU. A used one names its holder where the page knows it. Which physical GPU it is nobody knows here."""

    state: CellState
    flavor: str
    label: str = ""
    url: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class NodeBox:
    """One node and its GPUs."""

    id: int
    name: str
    is_ready: bool
    is_closed: bool
    cells: Sequence[GpuCell]
    holders: Sequence[Holder] = ()
    # Something is wrong with it, or was done to it, that people are told of.
    needs_look: bool = False

    @property
    def free(self) -> int:
        """GPUs that can be had now."""
        return sum(cell.state is CellState.FREE for cell in self.cells)


@dataclass(slots=True)
class Domain:
    """One domain of a level. An empty `name` gathers the nodes without that label: they share nothing."""

    level: str
    name: str
    domains: list["Domain"] = field(default_factory=list)
    nodes: list[NodeBox] = field(default_factory=list)

    @property
    def all_nodes(self) -> list[NodeBox]:
        """The nodes here and in all domains below."""
        return [*self.nodes, *(node for domain in self.domains for node in domain.all_nodes)]

    @property
    def free(self) -> int:
        """GPUs that can be had now."""
        return sum(node.free for node in self.all_nodes)

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return sum(len(node.cells) for node in self.all_nodes)


def cluster_map(
    cluster: Cluster,
    holders: Mapping[int, Sequence[Holder]] | None = None,
    *,
    levels: Sequence[TopologyLevel] | None = None,
) -> Domain:
    """Return the cluster as the root of its domains, in one query (two without `levels`) whatever its size.

    `holders`, by node id, names what holds the GPUs; without it a used GPU is just used.
    """
    known = list(TopologyLevel.objects.filter(cluster=cluster)) if levels is None else levels
    return _tree(cluster.name, known, _nodes([cluster.pk])[cluster.pk], holders or {})


def cluster_maps(clusters: Sequence[Cluster]) -> dict[int, Domain]:
    """Return the maps of many clusters, whose levels are prefetched, by the cluster's id. One query."""
    nodes = _nodes([cluster.pk for cluster in clusters])
    return {cluster.pk: _tree(cluster.name, list(cluster.levels.all()), nodes[cluster.pk], {}) for cluster in clusters}


def cells_of(node: NodeShares, holders: Sequence[Holder] = ()) -> list[GpuCell]:
    """Return the GPUs of a node: those that we use, those that others use, idle ones, broken ones."""
    owners = [holder for holder in holders for _gpu in range(holder.gpus)]
    idle_state = _idle_state(node)
    cells: list[GpuCell] = []
    for each in node.shares:
        known, owners = owners[: each.held], owners[each.held :]
        idle = max(0, each.allocatable - each.held - each.foreign)
        broken = max(0, each.capacity - max(each.allocatable, each.held + each.foreign))
        cells += [GpuCell(CellState.USED, each.flavor, one.label, one.url, one.run) for one in known]
        cells += [GpuCell(CellState.USED, each.flavor)] * (each.held - len(known))
        cells += [GpuCell(CellState.FOREIGN, each.flavor)] * each.foreign
        cells += [GpuCell(idle_state, each.flavor)] * idle
        cells += [GpuCell(CellState.BROKEN, each.flavor)] * broken
    return cells


def _nodes(cluster_ids: Collection[int]) -> dict[int, list[NodeShares]]:
    """Read the nodes with their GPUs as one flat query: a node without GPUs is one row, with empty columns."""
    rows = (
        Node.objects.filter(cluster__in=cluster_ids, gone_at=None)
        .annotate(
            closed=ExpressionWrapper(closed_nodes(), output_field=BooleanField()),
            needs_look=ExpressionWrapper(NEEDS_LOOK | Q(is_ready=False), output_field=BooleanField()),
        )
        .order_by("pk", "accelerators__flavor__rank", "accelerators__flavor__name")
        .values_list(
            "cluster_id",
            *("pk", "name", "labels", "is_ready", "closed", "needs_look"),
            *(f"accelerators__{name}" for name in ("flavor__name", "capacity", "allocatable", "foreign", "held")),
        )
    )
    found: dict[int, list[NodeShares]] = defaultdict(list)
    for cluster_id, node_id, name, labels, is_ready, is_closed, needs_look, *share in rows:
        nodes, shares = found[cluster_id], [] if share[0] is None else [Share(*share)]
        if nodes and nodes[-1].id == node_id:
            nodes[-1] = nodes[-1]._replace(shares=[*nodes[-1].shares, *shares])
        else:
            nodes.append(NodeShares(node_id, name, labels, is_ready, is_closed, needs_look, shares))
    return found


def _tree(
    name: str,
    levels: Sequence[TopologyLevel],
    nodes: Iterable[NodeShares],
    holders: Mapping[int, Sequence[Holder]],
) -> Domain:
    root = Domain(level="", name=name)
    for node in sorted(nodes, key=lambda node: _order(node, levels)):
        home = root
        for level in levels:
            home = _child(home, level.name, node.labels.get(level.label_key, ""))
        home.nodes.append(_box(node, holders.get(node.id, ())))
    return root


def _box(node: NodeShares, holders: Sequence[Holder]) -> NodeBox:
    return NodeBox(
        id=node.id,
        name=node.name,
        is_ready=node.is_ready,
        is_closed=node.is_closed,
        cells=cells_of(node, holders),
        holders=holders,
        needs_look=node.needs_look or any(each.allocatable < each.held for each in node.shares),
    )


def _idle_state(node: NodeShares) -> CellState:
    if not node.is_ready:
        return CellState.NOT_READY
    return CellState.CORDONED if node.is_closed else CellState.FREE


def _order(node: NodeShares, levels: Sequence[TopologyLevel]) -> tuple[tuple[bool, Natural], ...]:
    # Nodes without a label come after those that have it.
    places = ((level.label_key not in node.labels, node.labels.get(level.label_key, "")) for level in levels)
    return tuple((is_missing, _natural(name)) for is_missing, name in (*places, (False, node.name)))


def _natural(name: str) -> Natural:
    """Return a key by which n9 comes before n10; the name itself tells n1 from n01."""
    parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name)]
    return (*parts, (-2, name))


def _child(home: Domain, level: str, name: str) -> Domain:
    # Nodes come sorted, so a domain that exists already is the last one.
    if not home.domains or home.domains[-1].name != name:
        home.domains.append(Domain(level=level, name=name))
    return home.domains[-1]
