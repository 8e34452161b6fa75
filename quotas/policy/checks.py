"""What a quota tree must keep to: pure functions over the frozen tree, whole GPUs throughout."""

import re
from dataclasses import dataclass

from quotas.policy.document import QuotaNode, QuotaTreeRows
from quotas.policy.limits import MAX_DEPTH, MAX_GPUS

# ASCII digits only: int() would also take the digits of other scripts, underscores, signs and blanks.
_WHOLE_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Excess:
    """A cohort's children hold more nominal GPUs of a flavor than the cohort itself."""

    parent: QuotaNode
    flavor_id: int
    nominal: int
    children: int


def whole_gpus(value: object) -> int | None:
    """Return what a person or a client wrote as whole GPUs from 0 to MAX_GPUS; None if it is anything else."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_GPUS else None


def claim(tree: QuotaTreeRows, node: QuotaNode, flavor_id: int) -> int:
    """Return what a node claims from its parent: its nominal amount, or without one what its children claim."""
    own = tree.nominal.get((node.id, flavor_id))
    if own is not None:
        return own
    return sum(claim(tree, child, flavor_id) for child in tree.children(node.id))


def first_excess(tree: QuotaTreeRows, node_id: str, flavor_id: int) -> Excess | None:
    """Look from a node up to its root for the first cohort whose children claim more than it has."""
    for node in tree.path(node_id):
        nominal = tree.nominal.get((node.id, flavor_id))
        below = sum(claim(tree, child, flavor_id) for child in tree.children(node.id))
        if nominal is not None and below > nominal:
            return Excess(node, flavor_id, nominal, below)
    return None


def is_too_deep(tree: QuotaTreeRows, parent_id: str | None) -> bool:
    """Whether a cohort below this parent would lie deeper than a reservation walks."""
    return parent_id is not None and len(tree.path(parent_id)) >= MAX_DEPTH
