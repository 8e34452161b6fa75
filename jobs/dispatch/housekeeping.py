"""What is looked after now and then: objects that nobody answers for, and counters that disagree with rows."""

import structlog

from jobs.accounting import drift
from jobs.dispatch import leftovers, orphans

log = structlog.get_logger(__name__)


def keep_house() -> None:
    """Delete what is left over, and say in the log what drifted: a person has to find out why before it is repaired."""
    orphans.sweep()
    leftovers.sweep()
    for finding in drift.findings():
        log.error("drift", **finding.as_document())
