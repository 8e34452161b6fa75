"""What each benchmark must reach, in one table."""

import operator
from dataclasses import dataclass

COMPARE = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Target:
    """A bound on one number of a benchmark's results."""

    name: str
    op: str
    limit: float


# Of `e2e-bind`, by the level at which the cluster lets gangs start.
E2E_BIND: dict[str, tuple[Target, ...]] = {
    level: (
        Target("dispatch_ratio_b", ">=", dispatch),
        Target("gang512_ratio", "<=", large),
        Target("path_ratio_b", ">=", 0.55),
        Target("jobs_per_s_a", ">=", 25),
        Target("partial_gangs", "<=", 0),
        Target("extra_writes_per_pod", "<=", writes),
    )
    for level, dispatch, large, writes in (("L0", 0.35, 3, 1), ("B", 0.9, 1.2, 0))
}
TARGETS: dict[str, tuple[Target, ...]] = {
    "cycle-nodes": (
        Target("p95_ms_1000", "<=", 60),
        Target("p95_ms_10000", "<=", 250),
        Target("speedup_vs_loop", ">=", 20),
    ),
    "pages": (
        Target("p95_ratio", "<=", 1.3),
        Target("max_queries", "<=", 10),
    ),
    "state-sync": (
        Target("cold_s", "<=", 10),
        Target("event_us", "<=", 100),
        Target("rss_mb", "<=", 1500),
        Target("speedup_vs_typed", ">=", 10),
    ),
    "watch-load": (Target("extra_requests", "<=", 0),),
    "restart": (
        Target("first_decision_s", "<=", 30),
        Target("double_starts", "<=", 0),
    ),
    "e2e-bind": E2E_BIND["B"],
    "e2e-multi": (Target("healthy_p95_ratio", "<=", 1.2),),
}
# These get an embedded PostgreSQL with all migrations before they are imported.
NEEDS_DATABASE = frozenset({"pages", "state-sync"})
# These start a portal of real processes and need the settings alone.
NEEDS_SETTINGS = frozenset({"watch-load", "restart", "e2e-bind", "e2e-multi"})
