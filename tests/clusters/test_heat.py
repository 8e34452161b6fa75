"""What a map makes of nodes, holders and measurements. No database."""

from clusters.selectors.heat import Cell, by_node, heat_map
from clusters.selectors.slots import slots_now
from clusters.selectors.topology import CellState, Domain, GpuCell, Holder, NodeBox

FREE = GpuCell(CellState.FREE, "h100")


def box(name: str, *cells: GpuCell, holders: tuple[Holder, ...] = (), is_ready: bool = True) -> NodeBox:
    return NodeBox(id=int(name[1:]), name=name, is_ready=is_ready, is_closed=False, cells=cells, holders=holders)


def used(run: str) -> GpuCell:
    return GpuCell(CellState.USED, "h100", label=run, run=run)


def rack(*nodes: NodeBox, name: str = "r1") -> Domain:
    return Domain("", "north", [Domain("rack", name, nodes=list(nodes))])


def test_measurements_go_to_the_gpus_of_their_own_run() -> None:
    holders = (Holder("a", "/a/", 1, "a"), Holder("b", "/b/", 2, "b"))
    root = rack(box("n1", used("a"), used("b"), used("b"), holders=holders))

    (row,) = heat_map(root, {(1, "b"): [80.0, 4.9], (1, "a"): [5.0]}).rows

    assert row.cells == [Cell("busy", 5.0, "a"), Cell("busy", 80.0, "b"), Cell("idle", 4.9, "b")]


def test_without_holders_the_measurements_of_the_node_are_taken_in_order() -> None:
    root = rack(box("n1", GpuCell(CellState.USED, "h100"), GpuCell(CellState.USED, "h100")))

    heat = heat_map(root, {(1, ""): [30.0]})

    assert [(cell.state, cell.util) for cell in heat.rows[0].cells] == [("busy", 30.0), ("busy", None)]
    assert heat.tally.utilisation == 30.0


def test_what_is_held_on_a_lost_node_is_unknown_and_not_busy() -> None:
    root = rack(box("n1", used("a"), GpuCell(CellState.NOT_READY, "h100"), is_ready=False))

    assert [cell.state for cell in heat_map(root, {(1, "a"): [99.0]}).rows[0].cells] == ["unknown", "fault"]


def test_a_stale_cluster_has_nothing_free() -> None:
    tally = heat_map(rack(box("n1", FREE, used("a"))), {}, is_stale=True).tally

    assert (tally.gpus, tally.unknown, tally.free, tally.held) == (2, 2, 0, 0)


def test_one_cell_a_node_shows_the_worst_fault_else_the_mean() -> None:
    broken, held = GpuCell(CellState.BROKEN, "h100"), GpuCell(CellState.USED, "h100")
    root = rack(box("n1", FREE, FREE, broken), box("n2", held, held, FREE))

    rows = by_node(heat_map(root, {(2, ""): [20.0, 60.0]})).rows

    assert [list(row.cells) for row in rows] == [[Cell("fault")], [Cell("busy", 40.0)]]
    assert rows[0].tally.free == 2


def test_a_group_of_nodes_never_counts_over_two_racks() -> None:
    racks = [rack(*(box(f"n{i}", FREE, FREE) for i in range(3)), name=name).domains[0] for name in ("r1", "r2")]
    root = Domain("", "north", racks)

    assert slots_now(root)[0].fits == ((2, 6), (4, 2), (8, 0))


def test_nodes_without_a_label_share_nothing() -> None:
    root = rack(box("n1", FREE), box("n2", FREE), name="")

    assert slots_now(root)[0].fits == ((1, 2), (2, 0))
