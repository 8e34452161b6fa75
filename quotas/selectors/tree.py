"""Reads of the quota tree, each in a fixed number of queries whatever its size."""

from dataclasses import dataclass, replace

from portal.identity.models import Team
from quotas.models import Cohort, Queue, Quota, QuotaUsage
from quotas.policy.document import Cell, QuotaNode, QuotaTreeRows, cohort_id, queue_id


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """What a queue may still start of one flavor. `left` is the least room on its path, never below 0."""

    queue: str
    flavor_id: int
    nominal: int
    used: int
    left: int


def quota_tree(organization_id: int | None = None) -> QuotaTreeRows:
    """Read the whole tree, or that of one organization, in four queries."""
    cohorts = Cohort.objects.order_by("name")
    queues = Queue.objects.select_related("cohort").order_by("name")
    if organization_id is not None:
        cohorts = cohorts.filter(organization_id=organization_id)
        queues = queues.filter(cohort__organization_id=organization_id)
    nodes = _ordered([_cohort_node(cohort) for cohort in cohorts] + [_queue_node(queue) for queue in queues])
    known = {node.id for node in nodes}
    quotas = {_cell(row): row for row in Quota.objects.all()}
    used = {_cell(row): row.used for row in QuotaUsage.objects.all()}
    return QuotaTreeRows(
        nodes=nodes,
        nominal={cell: row.nominal for cell, row in quotas.items() if cell[0] in known},
        used={cell: gpus for cell, gpus in used.items() if cell[0] in known},
        versions={cell: row.version for cell, row in quotas.items() if cell[0] in known},
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


def _cohort_node(cohort: Cohort) -> QuotaNode:
    return QuotaNode(
        id=cohort_id(cohort.pk),
        pk=cohort.pk,
        name=cohort.name,
        parent=None if cohort.parent_id is None else cohort_id(cohort.parent_id),
        depth=0,
        organization_id=cohort.organization_id,
        version=cohort.version,
    )


def _queue_node(queue: Queue) -> QuotaNode:
    return QuotaNode(
        id=queue_id(queue.pk),
        pk=queue.pk,
        name=queue.name,
        parent=cohort_id(queue.cohort_id),
        depth=0,
        organization_id=queue.cohort.organization_id,
        version=queue.version,
        team_id=queue.team_id,
        is_default=queue.is_default,
        is_paused=queue.is_paused,
    )


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


def _cell(row: Quota | QuotaUsage) -> Cell:
    node = queue_id(row.queue_id) if row.queue_id is not None else cohort_id(row.cohort_id or 0)
    return node, row.flavor_id
