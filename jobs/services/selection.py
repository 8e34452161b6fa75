"""One act on many jobs: each is checked and done for itself, and the tally says what came of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from jobs.models import Job
from jobs.permissions import can_control
from portal.core.errors import DomainError
from portal.identity.models import User

MOST = 200
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Tally:
    """How many were done, not allowed to this person, and refused; `reasons` has the first distinct ones in words."""

    done: int = 0
    not_allowed: int = 0
    refused: int = 0
    reasons: tuple[str, ...] = ()


def each(jobs: Iterable[Job], *, user: User, roles: Mapping[int, str], act: Callable[[Job], None]) -> Tally:
    """Do `act` to every job that the person controls."""
    done = not_allowed = 0
    refusals: list[str] = []
    for job in jobs:
        if not can_control(user, roles.get(job.team_id), job):
            not_allowed += 1
            continue
        try:
            act(job)
            done += 1
        except DomainError as refusal:
            refusals.append(refusal.message)
    return Tally(done, not_allowed, len(refusals), tuple(dict.fromkeys(refusals))[:MOST_REASONS])
