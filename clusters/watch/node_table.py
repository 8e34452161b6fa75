"""Rows of the nodes of one cluster, of their GPUs, and their timeline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from clusters.models import Node, NodeAccelerator, NodeEvent
from clusters.watch.fault_table import FaultTable, Look
from clusters.watch.foreign import ForeignShare
from clusters.watch.inventory import Catalogue, Change, NodeFacts, NodeView, changes, facts_of
from portal.core.upsert import upsert

_COLUMNS = [column.name for column in fields(NodeView) if column.name != "devices"]
_FOREIGN = ("foreign_cpu_milli", "foreign_memory_mib", "foreign_pods")
_OFFERED = ("node_id", "flavor_id", "capacity", "allocatable", "foreign")


@dataclass(frozen=True, slots=True)
class Written:
    """A row as it stands in the database."""

    id: int
    view: NodeView
    is_gone: bool = False
    foreign: ForeignShare = field(default_factory=ForeignShare)

    @property
    def facts(self) -> NodeFacts:
        """What the timeline compares."""
        now = facts_of(self.view)
        return NodeFacts(now.uid, self.is_gone, now.is_ready, now.is_cordoned, now.labels, now.devices)


class NodeTable:
    """Writes only what changed. `NodeAccelerator.held` belongs to another floor and is never written here."""

    def __init__(self, cluster_id: int, catalogue: Catalogue) -> None:
        self._cluster_id = cluster_id
        self._catalogue = catalogue
        self._rows: dict[str, Written] = {}
        self._faults = FaultTable(cluster_id, catalogue)
        self._has_new_faults = False

    def load(self) -> None:
        """Read what is written already."""
        self._faults.load()
        nodes = Node.objects.filter(cluster_id=self._cluster_id).prefetch_related("accelerators")
        self._rows = {node.name: _written(node) for node in nodes}

    def view(self, name: str) -> NodeView | None:
        """Return a node that is there, as written."""
        row = self._rows.get(name)
        return None if row is None or row.is_gone else row.view

    def present(self) -> dict[str, str]:
        """Return the uid of each node that is there, by name."""
        return {name: row.view.uid for name, row in self._rows.items() if not row.is_gone}

    def write(self, shares: Mapping[str, ForeignShare], views: Iterable[NodeView], now: datetime) -> bool:
        """Write the nodes that changed, in what they are or in what foreign pods take from them."""
        news = [view for view in views if self._is_news(view, shares[view.name])]
        if not news:
            return False
        before = {view.name: self._rows.get(view.name) for view in news}
        ids = self._write_nodes(news, shares, now)
        self._write_accelerators(ids, news, before, shares)
        self._has_new_faults |= self._faults.observe(
            [_look(ids[view.name], before[view.name], view) for view in news], now
        )
        timeline = []
        for view in news:
            was = before[view.name]
            happened = changes(was.facts if was else None, facts_of(view), self._catalogue)
            timeline += [(ids[view.name], change) for change in happened]
            self._rows[view.name] = Written(ids[view.name], view, foreign=shares[view.name])
        _note(timeline, now)
        return True

    def forget(self, names: Iterable[str], now: datetime) -> bool:
        """Mark nodes as gone. Their rows stay: allocations refer to them."""
        gone = [self._rows[name] for name in names]
        if not gone:
            return False
        Node.objects.filter(pk__in=[row.id for row in gone]).update(gone_at=now, updated_at=now)
        _note([(row.id, Change("gone")) for row in gone], now)
        self._has_new_faults |= self._faults.gone([(row.id, row.view) for row in gone], now)
        for row in gone:
            self._rows[row.view.name] = Written(row.id, row.view, is_gone=True, foreign=row.foreign)
        return True

    def take_new_faults(self) -> bool:
        """Whether a fault was opened since this was asked last."""
        found, self._has_new_faults = self._has_new_faults, False
        return found

    def _is_news(self, view: NodeView, share: ForeignShare) -> bool:
        row = self._rows.get(view.name)
        return row is None or row.is_gone or row.view != view or row.foreign != share

    def _write_nodes(
        self, views: Iterable[NodeView], shares: Mapping[str, ForeignShare], now: datetime
    ) -> dict[str, int]:
        rows = [_row(view, shares[view.name]) for view in views]
        same = {"cluster_id": self._cluster_id, "gone_at": None, "updated_at": now}
        found = upsert(Node, rows, [*_COLUMNS, *_FOREIGN], same=same, unique=("cluster_id", "name"))
        return {name: key for key, _cluster, name in found}

    def _write_accelerators(
        self,
        ids: Mapping[str, int],
        views: Iterable[NodeView],
        before: Mapping[str, Written | None],
        shares: Mapping[str, ForeignShare],
    ) -> None:
        rows = []
        for view in views:
            was, foreign = before[view.name], shares[view.name].devices
            # A flavor that the node no longer offers keeps its row, at zero: something may be held there.
            for flavor_id in {*view.devices, *(was.view.devices if was else ())}:
                capacity, allocatable = view.devices.get(flavor_id, (0, 0))
                values = (ids[view.name], flavor_id, capacity, allocatable, foreign.get(flavor_id, 0))
                rows.append(dict(zip(_OFFERED, values, strict=True)))
        upsert(NodeAccelerator, rows, _OFFERED, same={}, unique=("node_id", "flavor_id"))


def _look(node_id: int, was: Written | None, view: NodeView) -> Look:
    return Look(node_id, was.view if was else None, view, was_gone=bool(was and was.is_gone))


def _row(view: NodeView, share: ForeignShare) -> dict[str, object]:
    foreign = zip(_FOREIGN, (share.cpu_milli, share.memory_mib, share.pods), strict=True)
    return {name: getattr(view, name) for name in _COLUMNS} | dict(foreign)


def _note(changes: Iterable[tuple[int, Change]], now: datetime) -> None:
    """Write lines of timelines."""
    lines = [{"node_id": node_id, "kind": change.kind, "detail": change.detail} for node_id, change in changes]
    upsert(NodeEvent, lines, ("node_id", "kind", "detail"), same={"at": now})


def _written(node: Node) -> Written:
    accelerators = list(node.accelerators.all())
    devices = {each.flavor_id: (each.capacity, each.allocatable) for each in accelerators}
    view = NodeView(
        devices={flavor: counts for flavor, counts in devices.items() if any(counts)},
        **{name: getattr(node, name) for name in _COLUMNS},
    )
    foreign = ForeignShare(
        cpu_milli=node.foreign_cpu_milli,
        memory_mib=node.foreign_memory_mib,
        pods=node.foreign_pods,
        devices={each.flavor_id: each.foreign for each in accelerators if each.foreign},
    )
    return Written(node.pk, view, is_gone=node.gone_at is not None, foreign=foreign)
