"""Compare the counters with what is really held, and put them right.

What is held is known a floor above, as sums over allocations that are not released; it comes in as a mapping
(queue id, flavor id) -> whole GPUs.
"""

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db import transaction

from portal.core import audit
from portal.core.audit import Actor, Target
from portal.core.enqueue import enqueue
from portal.core.publish import publish
from quotas.models import QuotaUsage
from quotas.policy.document import QuotaNode
from quotas.selectors.tree import quota_tree

Held = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Drift:
    """One counter that is wrong: of which node and flavor, what it says, what it should say. Whole GPUs."""

    node: QuotaNode
    flavor_id: int
    counted: int
    held: int


def recompute_usage(held: Held) -> tuple[Drift, ...]:
    """Return every counter that differs from the sums, parents before children, then by flavor.

    Right only if nothing is reserved or released between reading `held` and the counters: read both in one
    repeatable-read transaction, or use `repair`.
    """
    tree = quota_tree()
    expected: Tally[tuple[str, int]] = Tally()
    for node in tree.nodes:
        for (queue, flavor), gpus in held.items():
            if node.is_queue and node.pk == queue:
                expected.update({(above.id, flavor): gpus for above in tree.path(node.id)})
    flavors = sorted({flavor for _node, flavor in (*expected, *tree.used)})
    cells = [(node, flavor) for node in tree.nodes for flavor in flavors]
    return tuple(
        Drift(node, flavor, counted=tree.used.get((node.id, flavor), 0), held=expected[node.id, flavor])
        for node, flavor in cells
        if tree.used.get((node.id, flavor), 0) != expected[node.id, flavor]
    )


@transaction.atomic
def repair(*, actor: Actor, read_held: Callable[[], Held]) -> tuple[Drift, ...]:
    """Set every wrong counter to what is held and return what was wrong, each also in the audit log.

    Locks all counters first, so that no reservation is half way; only then asks `read_held` for the sums.
    """
    list(QuotaUsage.objects.order_by("flavor_id", "cohort_id", "queue_id").select_for_update(no_key=True))
    drifts = recompute_usage(read_held())
    for drift in drifts:
        _set(drift)
        audit.record(
            actor,
            "usage.repaired",
            Target(type="usage", id=drift.node.id, label=drift.node.name, team_id=drift.node.team_id),
            before={"flavor_id": drift.flavor_id, "used": drift.counted},
            after={"flavor_id": drift.flavor_id, "used": drift.held},
        )
    if drifts:
        enqueue("jobs.tasks.run_cycle")
        publish("queues")
    return drifts


def _set(drift: Drift) -> None:
    rows, values = QuotaUsage.objects, {"used": drift.held}
    if drift.node.is_queue:
        rows.update_or_create(queue_id=drift.node.pk, flavor_id=drift.flavor_id, defaults=values)
    else:
        rows.update_or_create(cohort_id=drift.node.pk, flavor_id=drift.flavor_id, defaults=values)
