"""The quota tree as one frozen value, without a database behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

# One cell of the matrices: (node id, flavor id).
Cell = tuple[str, int]


@dataclass(frozen=True, slots=True)
class QuotaNode:
    """A cohort or, as a leaf, a queue. `id` is "cohort:PK" or "queue:PK"; `parent` is such an id, None for a root."""

    id: str
    pk: int
    name: str
    parent: str | None
    depth: int
    organization_id: int
    version: int
    team_id: int | None = None
    is_default: bool = False
    is_paused: bool = False

    @property
    def is_queue(self) -> bool:
        """Whether jobs can be submitted to it."""
        return self.team_id is not None

    @property
    def kind(self) -> str:
        """Either "queue" or "cohort"."""
        return "queue" if self.is_queue else "cohort"


@dataclass(frozen=True, slots=True)
class QuotaTreeRows:
    """The tree as rows. `nodes`: a parent stands before its children, siblings go by name, cohorts first.

    nominal, used: whole GPUs by cell. A cell missing in `nominal` means none for a queue and no cap for a cohort;
    missing in `used` means 0. A cohort's `used` already contains what its queues hold.
    versions: the version of the quota row behind each cell of `nominal`.
    """

    nodes: tuple[QuotaNode, ...]
    nominal: Mapping[Cell, int]
    used: Mapping[Cell, int]
    versions: Mapping[Cell, int]

    @property
    def by_id(self) -> Mapping[str, QuotaNode]:
        """The nodes by their id."""
        return {node.id: node for node in self.nodes}

    def children(self, node_id: str) -> tuple[QuotaNode, ...]:
        """Return what lies right below a node."""
        return tuple(node for node in self.nodes if node.parent == node_id)

    def path(self, node_id: str) -> tuple[QuotaNode, ...]:
        """Return the node and all above it, the node first."""
        by_id = self.by_id
        path: list[QuotaNode] = []
        step: str | None = node_id
        while step is not None:
            path.append(by_id[step])
            step = by_id[step].parent
        return tuple(path)

    def with_nominal(self, cell: Cell, nominal: int | None) -> "QuotaTreeRows":
        """Return the tree as it would be with another nominal amount in one cell; None takes the quota away."""
        others = {key: gpus for key, gpus in self.nominal.items() if key != cell}
        return replace(self, nominal=others if nominal is None else {**others, cell: nominal})


def cohort_id(pk: int) -> str:
    """The node id of a cohort."""
    return f"cohort:{pk}"


def queue_id(pk: int) -> str:
    """The node id of a queue."""
    return f"queue:{pk}"
