"""Reads of the quota tree, each in a fixed number of queries whatever its size."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db.models import IntegerField, Value

from portal.identity.models import Team
from quotas.models import Cohort, Quota, QuotaUsage
from quotas.policy.document import QuotaNode, QuotaTreeRows, cohort_id, queue_id

_COHORT_COLUMNS = ("pk", "name", "parent_id", "organization_id", "version")
_QUEUE_COLUMNS = tuple(f"queues__{name}" for name in ("pk", "name", "version", "team_id", "is_default", "is_paused"))


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """What a queue may still start of one flavor. `left` is the least room on its path, never below 0."""

    queue: str
    flavor_id: int
    nominal: int
    used: int
    left: int


class _CellRow(NamedTuple):
    node: str
    flavor: int
    nominal: int | None
    used: int | None
    version: int | None


def quota_tree(organization_id: int | None = None) -> QuotaTreeRows:
    """Read the whole tree, or that of one organization, in two queries."""
    rows = Cohort.objects.order_by("name", "queues__name").values(*_COHORT_COLUMNS, *_QUEUE_COLUMNS)
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    cohorts: dict[int, QuotaNode] = {}
    queues: list[QuotaNode] = []
    for row in rows:  # one per queue; a cohort without queues has one with nothing of a queue
        cohorts.setdefault(row["pk"], _cohort_node(row))
        if row["queues__pk"] is not None:
            queues.append(_queue_node(row))
    nodes = _ordered([*cohorts.values(), *queues])
    known = {node.id for node in nodes}
    cells = [cell for cell in _cells() if cell.node in known]
    return QuotaTreeRows(
        nodes=nodes,
        nominal={(cell.node, cell.flavor): cell.nominal for cell in cells if cell.nominal is not None},
        used={(cell.node, cell.flavor): cell.used for cell in cells if cell.used is not None},
        versions={(cell.node, cell.flavor): cell.version for cell in cells if cell.version is not None},
    )


def room(tree: QuotaTreeRows, node_id: str, flavor_id: int) -> int | None:
    """Return what may still start below a node: the least room on its path, never below 0; None without any limit."""
    path = tree.path(node_id)
    if path[0].is_queue and (node_id, flavor_id) not in tree.nominal:
        return 0
    cells = [(node.id, flavor_id) for node in path]
    rooms = [tree.nominal[cell] - tree.used.get(cell, 0) for cell in cells if cell in tree.nominal]
    return max(0, min(rooms)) if rooms else None


def quota_left(team: Team) -> tuple[QuotaLeft, ...]:
    """Return one entry per queue of the team and flavor it has quota in, by queue name and flavor id."""
    tree = quota_tree(team.organization_id)
    own = [node for node in tree.nodes if node.team_id == team.pk]
    cells = sorted((node.name, flavor, node.id) for node in own for held, flavor in tree.nominal if held == node.id)
    return tuple(
        QuotaLeft(
            queue=name,
            flavor_id=flavor,
            nominal=tree.nominal[node_id, flavor],
            used=tree.used.get((node_id, flavor), 0),
            left=room(tree, node_id, flavor) or 0,
        )
        for name, flavor, node_id in cells
    )


def _cohort_node(row: dict[str, Any]) -> QuotaNode:
    return QuotaNode(
        id=cohort_id(row["pk"]),
        pk=row["pk"],
        name=row["name"],
        parent=None if row["parent_id"] is None else cohort_id(row["parent_id"]),
        depth=0,
        organization_id=row["organization_id"],
        version=row["version"],
    )


def _queue_node(row: dict[str, Any]) -> QuotaNode:
    return QuotaNode(
        id=queue_id(row["queues__pk"]),
        pk=row["queues__pk"],
        name=row["queues__name"],
        parent=cohort_id(row["pk"]),
        depth=0,
        organization_id=row["organization_id"],
        version=row["queues__version"],
        team_id=row["queues__team_id"],
        is_default=row["queues__is_default"],
        is_paused=row["queues__is_paused"],
    )


def _cells() -> list[_CellRow]:
    """Read quotas and usage: two rows for a cell that has both."""
    nothing = Value(None, output_field=IntegerField())
    place = ("cohort_id", "queue_id", "flavor_id")
    usage = QuotaUsage.objects.values_list(*place, nothing, "used", nothing)
    rows = Quota.objects.values_list(*place, "nominal", nothing, "version").union(usage, all=True)
    return [
        _CellRow(queue_id(queue) if queue is not None else cohort_id(cohort), *values)
        for cohort, queue, *values in rows
    ]


def _ordered(nodes: list[QuotaNode]) -> tuple[QuotaNode, ...]:
    """Put parents before their children and tell every node its depth (a root has 0)."""
    children: dict[str | None, list[QuotaNode]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    ordered: list[QuotaNode] = []
    waiting = [(0, node) for node in reversed(children.get(None, []))]
    while waiting:
        depth, node = waiting.pop()
        ordered.append(replace(node, depth=depth))
        waiting.extend((depth + 1, child) for child in reversed(children.get(node.id, [])))
    return tuple(ordered)
