"""Reasons as they are stored -> sentences."""

from collections.abc import Mapping

from jobs.explain.reasons import explain
from jobs.scheduler.types import Reason, ReasonCode


def sentence_of(code: str, numbers: Mapping[str, int | str]) -> str:
    """Return the sentence for a stored reason."""
    return explain(Reason(ReasonCode(code), numbers))
