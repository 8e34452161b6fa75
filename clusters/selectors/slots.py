"""How many groups of whole nodes could start now without leaving their domain of the lowest topology level."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from clusters.selectors.topology import CellState, Domain, NodeBox


@dataclass(frozen=True, slots=True)
class Slots:
    """Free groups of one flavor: for 1, 2, 4... nodes of `per_node` GPUs, how many groups there is room for.

    `fits` holds (GPUs of a group, groups) pairs, smallest first; the last pair is the first size that does not fit.
    """

    flavor: str
    level: str
    per_node: int
    fits: tuple[tuple[int, int], ...]


def slots_now(root: Domain, *, flavor: str = "") -> list[Slots]:
    """Return the slots of each flavor of the map. Nodes without a label of the lowest level share nothing."""
    groups = list(_groups(root))
    level = next((level for level, _nodes in groups if level), "")
    sizes = _sizes(node for _level, nodes in groups for node in nodes)
    found = []
    for name, per_node in sizes.items():
        if flavor in ("", name):
            whole = [sum(_is_whole(node, name, per_node) for node in nodes) for _level, nodes in groups]
            found.append(Slots(name, level, per_node, tuple(_fits(whole, per_node))))
    return found


def _groups(domain: Domain) -> Iterator[tuple[str, list[NodeBox]]]:
    if domain.nodes and domain.name:
        yield domain.level, domain.nodes
    elif domain.nodes:
        yield from ((domain.level, [node]) for node in domain.nodes)
    for child in domain.domains:
        yield from _groups(child)


def _sizes(nodes: Iterator[NodeBox]) -> dict[str, int]:
    """Return the usual number of GPUs of a node, by flavor; of two that are as usual, the larger."""
    counts: dict[str, Counter[int]] = {}
    for node in nodes:
        for name, gpus in Counter(cell.flavor for cell in node.cells).items():
            counts.setdefault(name, Counter())[gpus] += 1
    return {name: max(sizes, key=lambda size: (sizes[size], size)) for name, sizes in counts.items()}


def _is_whole(node: NodeBox, flavor: str, per_node: int) -> bool:
    return sum(cell.flavor == flavor and cell.state is CellState.FREE for cell in node.cells) >= per_node


def _fits(whole: list[int], per_node: int) -> Iterator[tuple[int, int]]:
    nodes, groups = 1, 1
    while groups:
        groups = sum(free // nodes for free in whole)
        yield nodes * per_node, groups
        nodes *= 2
