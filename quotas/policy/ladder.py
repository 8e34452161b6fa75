"""The ladder of priorities that an installation starts with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One priority class. Open: every team may use it; otherwise a team needs a grant."""

    name: str
    value: int
    description: str
    is_open: bool = False
    is_default: bool = False


def default_ladder() -> tuple[Rung, ...]:
    """Return the rungs, highest first.

    The ends are given: 1000000 for what the platform lives on, 100 for development. Between them each step is at
    least twice the one below, which leaves room for classes of one's own. What serves customers needs a grant.
    """
    return (
        Rung("platform-critical", 1_000_000, "What the platform itself needs to run."),
        Rung("production", 100_000, "Services that customers wait for."),
        Rung("production-batch", 50_000, "Training and batch work with a delivery date."),
        Rung("research", 10_000, "Experiments that a team plans for.", is_open=True),
        Rung("standard", 1_000, "Everything else.", is_open=True, is_default=True),
        Rung("development", 100, "Trying things out; goes last.", is_open=True),
    )
