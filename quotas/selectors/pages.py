"""The quota tree as pages draw it: rows in the order of the tree, one cell per flavor."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from clusters.models import ResourceFlavor
from portal.identity.models import Organization, Team
from quotas.models import PriorityClass
from quotas.policy.checks import claim
from quotas.policy.document import QuotaNode, QuotaTreeRows
from quotas.selectors.priority import ladder
from quotas.selectors.tree import quota_tree, room


@dataclass(frozen=True, slots=True)
class QuotaCell:
    """One node's share of one flavor, in whole GPUs.

    nominal: None = no quota (none for a queue, no cap for a cohort). version: of the quota, 0 without one.
    left: what may still start, the least room on the path; None where nothing on the path sets a limit.
    shared: what the children claim, for a cohort.
    """

    node: QuotaNode
    flavor: ResourceFlavor
    nominal: int | None
    version: int
    used: int
    left: int | None
    shared: int

    @property
    def id(self) -> str:
        """The id of the cell in a page."""
        return f"quota-{self.node.kind}-{self.node.pk}-{self.flavor.pk}"

    @property
    def over(self) -> int:
        """What is in use above the nominal amount: an administrator lowered it."""
        return 0 if self.nominal is None else max(0, self.used - self.nominal)


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A node with its cells, in the order of the flavors; `team` and `is_own` are of queues."""

    node: QuotaNode
    cells: tuple[QuotaCell, ...]
    team: Team | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class TreeTable:
    """The tree of one organization."""

    organization: Organization
    rows: tuple[TreeRow, ...]


def tree_tables(
    organizations: Iterable[Organization], flavors: Collection[ResourceFlavor], own_team_ids: Collection[int] = ()
) -> tuple[TreeTable, ...]:
    """Return one table per organization, in four queries however many rows there are."""
    tree = quota_tree()
    teams = {team.pk: team for team in Team.objects.all()}
    tables = []
    for organization in organizations:
        nodes = [node for node in tree.nodes if node.organization_id == organization.pk]
        rows = tuple(
            TreeRow(
                node=node,
                cells=tuple(_cell(tree, node, flavor) for flavor in flavors),
                team=teams[node.team_id] if node.team_id is not None else None,
                is_own=node.team_id in own_team_ids,
            )
            for node in nodes
        )
        tables.append(TreeTable(organization, rows))
    return tuple(tables)


def queue_cells(tree: QuotaTreeRows, node: QuotaNode, flavors: Iterable[ResourceFlavor]) -> tuple[QuotaCell, ...]:
    """Return the cells of one queue, of the flavors that it has quota in or holds."""
    cells = (_cell(tree, node, flavor) for flavor in flavors)
    return tuple(cell for cell in cells if cell.nominal is not None or cell.used)


def flavor_choices() -> list[ResourceFlavor]:
    """Return the flavors in the administrator's order."""
    return list(ResourceFlavor.objects.order_by("rank", "name"))


def ladder_with_teams() -> list[PriorityClass]:
    """Return the rungs, highest first, each with the teams that hold a grant, in two queries."""
    return list(ladder().prefetch_related("grants__team"))


def _cell(tree: QuotaTreeRows, node: QuotaNode, flavor: ResourceFlavor) -> QuotaCell:
    key = (node.id, flavor.pk)
    below = tree.children(node.id)
    return QuotaCell(
        node=node,
        flavor=flavor,
        nominal=tree.nominal.get(key),
        version=tree.versions.get(key, 0),
        used=tree.used.get(key, 0),
        left=room(tree, node.id, flavor.pk),
        shared=sum(claim(tree, child, flavor.pk) for child in below),
    )
