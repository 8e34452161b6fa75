"""How busy each GPU of a map is, as cells that pages draw: what it does, how much of it, and for whom."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from clusters.selectors.topology import CellState, Domain, GpuCell, Holder, NodeBox

# A held GPU that is busy for less than this (percent) does nothing for its holder.
IDLE_BELOW = 5.0
# Above so many GPUs a map of the whole fleet draws one cell a node.
MOST_CELLS = 2_000

Measured = Mapping[tuple[int, str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One GPU, or one node of a large fleet. `state` is a word of the look; `util` in percent, None: not measured."""

    state: str
    util: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """GPUs by what they do. `utilisation` is the mean of the held ones that were measured, in percent."""

    gpus: int = 0
    free: int = 0
    held: int = 0
    idle: int = 0
    foreign: int = 0
    out: int = 0
    unknown: int = 0
    measured: int = 0
    busy: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """The whole numbers by name, for a table."""
        return [(name, getattr(self, name)) for name in _NUMBERS]

    @property
    def utilisation(self) -> float | None:
        """Mean utilisation of the held GPUs, in percent; None when none was measured."""
        return self.busy / self.measured if self.measured else None


_NUMBERS = ("gpus", "free", "held", "idle", "foreign", "out", "unknown")


@dataclass(frozen=True, slots=True)
class Row:
    """One node of the map."""

    id: int
    name: str
    cells: Sequence[Cell]
    holders: Sequence[Holder]
    tally: Tally
    is_mine: bool = False

    @property
    def key(self) -> str:
        """The id of its live cell."""
        return f"node-{self.id}"


@dataclass(frozen=True, slots=True)
class Rack:
    """The nodes of one domain of the lowest level. An empty name: they carry no label of that level."""

    level: str
    name: str
    rows: Sequence[Row]

    @property
    def tally(self) -> Tally:
        """GPUs by what they do."""
        return sum((row.tally for row in self.rows), Tally())


@dataclass(frozen=True, slots=True)
class Block:
    """Racks that lie together. `path` names the wider levels, widest first: (level, name) pairs."""

    path: Sequence[tuple[str, str]]
    racks: Sequence[Rack]


@dataclass(frozen=True, slots=True)
class Map:
    """A cluster as pages draw it."""

    blocks: Sequence[Block]
    tally: Tally

    @property
    def rows(self) -> list[Row]:
        """All nodes that the map shows."""
        return [row for block in self.blocks for rack in block.racks for row in rack.rows]


def heat_map(root: Domain, measured: Measured, *, is_stale: bool = False, flavor: str = "", run: str = "") -> Map:
    """Return the map with the newest utilisations, by (node, run), on it.

    A stale cluster's GPUs are all unknown. `flavor` leaves out all others, and nodes without it. `run` marks the
    nodes of a job, if its holder may be named to this person.
    """
    blocks = []
    for path, domains in groupby(_leaves(root, ()), key=lambda leaf: leaf[0]):
        racks = [_rack(domain, measured, is_stale=is_stale, flavor=flavor, run=run) for _path, domain in domains]
        if shown := [rack for rack in racks if rack.rows]:
            blocks.append(Block(path, shown))
    found = Map(blocks, Tally())
    return replace(found, tally=sum((row.tally for row in found.rows), Tally()))


def by_node(heat: Map) -> Map:
    """Return the map with one cell a node: a fault of any GPU wins, else the most frequent state and the mean use."""
    blocks = [
        replace(block, racks=[replace(rack, rows=[_merged(row) for row in rack.rows]) for rack in block.racks])
        for block in heat.blocks
    ]
    return replace(heat, blocks=blocks)


def _leaves(domain: Domain, path: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[tuple[str, str], ...], Domain]]:
    if domain.nodes:
        yield path[:-1], domain
    for child in domain.domains:
        yield from _leaves(child, (*path, (child.level, child.name)))


def _rack(domain: Domain, measured: Measured, *, is_stale: bool, flavor: str, run: str) -> Rack:
    rows = [_row(node, measured, is_stale=is_stale, flavor=flavor, run=run) for node in domain.nodes]
    # Without levels all nodes hang on the cluster itself, whose name needs no saying.
    name = domain.name if domain.level else ""
    return Rack(domain.level, name, [row for row in rows if row.cells or not flavor])


def _row(node: NodeBox, measured: Measured, *, is_stale: bool, flavor: str, run: str) -> Row:
    # Only the holder knows which runs are whose: where none is named, all measurements of the node are meant.
    left = {key: list(values) for key, values in _of_node(node, measured).items()}
    cells = [_cell(node, gpu, left, is_stale=is_stale) for gpu in node.cells if flavor in ("", gpu.flavor)]
    is_mine = bool(run) and any(holder.run == run and holder.url for holder in node.holders)
    return Row(node.id, node.name, cells, node.holders, _tally(cells), is_mine)


def _of_node(node: NodeBox, measured: Measured) -> dict[str, Sequence[float]]:
    if node.holders:
        return {holder.run: measured.get((node.id, holder.run), ()) for holder in node.holders}
    return {"": measured.get((node.id, ""), ())}


def _cell(node: NodeBox, gpu: GpuCell, left: Mapping[str, list[float]], *, is_stale: bool) -> Cell:
    if is_stale:
        return Cell("unknown", label=gpu.label)
    if gpu.state is not CellState.USED:
        return Cell(_IDLE_LOOKS[gpu.state])
    if not node.is_ready:
        return Cell("unknown", label=gpu.label)
    values = left.get(gpu.run)
    util = values.pop(0) if values else None
    return Cell("idle" if util is not None and util < IDLE_BELOW else "busy", util, gpu.label)


_IDLE_LOOKS = {
    CellState.FREE: "free",
    CellState.FOREIGN: "foreign",
    CellState.CORDONED: "cordoned",
    CellState.NOT_READY: "fault",
    CellState.BROKEN: "fault",
}


def _tally(cells: Iterable[Cell]) -> Tally:
    cells = list(cells)
    counts = Counter(cell.state for cell in cells)
    utils = [cell.util for cell in cells if cell.util is not None]
    return Tally(
        gpus=len(cells),
        free=counts["free"],
        held=counts["busy"] + counts["idle"],
        idle=counts["idle"],
        foreign=counts["foreign"],
        out=counts["fault"] + counts["cordoned"],
        unknown=counts["unknown"],
        measured=len(utils),
        busy=sum(utils),
    )


def _merged(row: Row) -> Row:
    if not row.cells:
        return row
    counts = Counter(cell.state for cell in row.cells)
    state = "fault" if counts["fault"] else counts.most_common(1)[0][0]
    return replace(row, cells=[Cell(state, row.tally.utilisation)])
