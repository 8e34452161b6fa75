"""What is looked after now and then: objects that nobody answers for, and counters that disagree with rows."""

import structlog

from jobs.accounting import drift
from jobs.dispatch import orphans

log = structlog.get_logger(__name__)


def keep_house() -> None:
    """Delete orphans, and say in the log what drifted: a person has to find out why before anything is repaired."""
    orphans.sweep()
    for finding in drift.findings():
        log.error("drift", **finding.as_document())
