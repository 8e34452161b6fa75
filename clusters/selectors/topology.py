"""The map of a cluster: its levels from wide to narrow, its nodes, and one cell for each GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from clusters.models import Cluster, Node, NodeAccelerator, TopologyLevel


class CellState(StrEnum):
    """What a GPU is doing, or why it does nothing."""

    USED = "used"
    FOREIGN = "foreign"
    FREE = "free"
    CORDONED = "cordoned"
    NOT_READY = "not_ready"
    BROKEN = "broken"  # built in, but the device plug-in no longer offers it


class Holder(NamedTuple):
    """Who holds GPUs of a node, for the floor above to say: what to write, where it leads, and how many."""

    label: str
    url: str
    gpus: int


@dataclass(frozen=True, slots=True)
class GpuCell:
    """One GPU. A used one names its holder where the page knows it. Which physical GPU it is nobody knows here."""

    state: CellState
    flavor: str
    label: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class NodeBox:
    """One node and its GPUs."""

    id: int
    name: str
    is_ready: bool
    is_cordoned: bool
    cells: Sequence[GpuCell]

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


def cluster_map(cluster: Cluster, holders: Mapping[int, Sequence[Holder]] | None = None) -> Domain:
    """Return the cluster as the root of its domains, in three queries whatever its size.

    `holders`, by node id, names what holds the GPUs; without it a used GPU is just used.
    """
    levels = list(TopologyLevel.objects.filter(cluster=cluster))
    nodes = Node.objects.filter(cluster=cluster, gone_at=None).prefetch_related("accelerators__flavor")
    root = Domain(level="", name=cluster.name)
    for node in sorted(nodes, key=lambda node: _order(node, levels)):
        home = root
        for level in levels:
            home = _child(home, level.name, node.labels.get(level.label_key, ""))
        home.nodes.append(_box(node, (holders or {}).get(node.pk, ())))
    return root


def cells_of(node: Node, accelerators: Iterable[NodeAccelerator], holders: Sequence[Holder] = ()) -> list[GpuCell]:
    """Return the GPUs of a node: those that we use, those that others use, idle ones, broken ones."""
    names = [(holder.label, holder.url) for holder in holders for _gpu in range(holder.gpus)]
    cells: list[GpuCell] = []
    for each in accelerators:
        flavor = each.flavor.name
        for label, url in [*names[: each.held], *[("", "")] * max(0, each.held - len(names))]:
            cells.append(GpuCell(CellState.USED, flavor, label, url))
        names = names[each.held :]
        idle = max(0, each.allocatable - each.held - each.foreign)
        broken = max(0, each.capacity - max(each.allocatable, each.held + each.foreign))
        cells += [GpuCell(CellState.FOREIGN, flavor)] * each.foreign
        cells += [GpuCell(_idle_state(node), flavor)] * idle
        cells += [GpuCell(CellState.BROKEN, flavor)] * broken
    return cells


def _box(node: Node, holders: Sequence[Holder]) -> NodeBox:
    accelerators = sorted(node.accelerators.all(), key=lambda each: (each.flavor.rank, each.flavor.name))
    return NodeBox(
        id=node.pk,
        name=node.name,
        is_ready=node.is_ready,
        is_cordoned=node.is_cordoned,
        cells=cells_of(node, accelerators, holders),
    )


def _idle_state(node: Node) -> CellState:
    if not node.is_ready:
        return CellState.NOT_READY
    return CellState.CORDONED if node.is_cordoned else CellState.FREE


def _order(node: Node, levels: Sequence[TopologyLevel]) -> tuple[tuple[bool, str], ...]:
    # Nodes without a label come after those that have it.
    places = ((level.label_key not in node.labels, node.labels.get(level.label_key, "")) for level in levels)
    return (*places, (False, node.name))


def _child(home: Domain, level: str, name: str) -> Domain:
    # Nodes come sorted, so a domain that exists already is the last one.
    if not home.domains or home.domains[-1].name != name:
        home.domains.append(Domain(level=level, name=name))
    return home.domains[-1]
