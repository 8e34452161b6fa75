"""Write what was seen of the spaces of a cluster, and what was applied."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from clusters.models import Cluster, Severity
from clusters.services.findings import SPACES, Finding, write_findings
from portal.core import clock
from portal.core.audit import SYSTEM, record
from portal.core.publish import publish
from quotas.models import Space, Tenancy
from quotas.sync.look import Seen
from quotas.sync.wishes import target_of

State = Space.State
_OF_OBJECT = {
    "in_step": State.IN_STEP,
    "missing": State.MISSING,
    "outdated": State.DRIFTED,
    "altered": State.DRIFTED,
    "unknown": State.UNKNOWN,
}
# The worst first.
_ORDER = (State.MISSING, State.DRIFTED, State.UNKNOWN, State.IN_STEP)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One space after a look: its objects, and the wish of a person that was met, if there was one."""

    team_id: int | None
    seen: Sequence[Seen]
    asked_at: datetime | None = None


@transaction.atomic
def write(cluster: Cluster, outcomes: Iterable[Outcome], guards: Finding) -> None:
    """Write what changed, and an audit event for each space in which something was applied."""
    outcomes = list(outcomes)
    rows = _rows(cluster, [each.team_id for each in outcomes])
    changed = [_write_one(cluster, rows[outcome.team_id], outcome) for outcome in outcomes]
    note(cluster, "")
    write_findings(cluster=cluster, findings=[_finding(outcomes), guards], is_whole_round=False)
    if any(changed):
        publish(f"cluster:{cluster.pk}", cluster.name)


def note(cluster: Cluster, error: str) -> None:
    """Say when the cluster was looked at, or what kept us from it."""
    values: dict[str, Any] = {"error": error[:300]} if error else {"error": "", "checked_at": clock.now()}
    Tenancy.objects.update_or_create(cluster=cluster, defaults=values)


def _rows(cluster: Cluster, team_ids: Iterable[int | None]) -> Mapping[int | None, Space]:
    """One row for each space, made where there is none yet."""
    Space.objects.bulk_create((Space(cluster=cluster, team_id=team_id) for team_id in team_ids), ignore_conflicts=True)
    return {row.team_id: row for row in Space.objects.filter(cluster=cluster).select_related("team")}


def _write_one(cluster: Cluster, row: Space, outcome: Outcome) -> bool:
    told, state = [_told(seen) for seen in outcome.seen], state_of(outcome.seen)
    if outcome.asked_at is not None:
        # A wish that came since stays.
        Space.objects.filter(pk=row.pk, asked_at=outcome.asked_at).update(asked_at=None)
    applied = [f"{seen.kind} {seen.name}" for seen in outcome.seen if seen.is_applied]
    if applied:
        after = {"cluster": cluster.name, "objects": applied}
        record(SYSTEM, "space.applied", target_of(cluster, row.team), after=after)
    if (row.state, row.objects_seen) == (state, told):
        return outcome.asked_at is not None
    Space.objects.filter(pk=row.pk).update(state=state, objects_seen=told, since=clock.now())
    return True


def state_of(seen: Iterable[Seen]) -> Space.State:
    """Return the worst state of the objects."""
    return min((_OF_OBJECT[each.judgement.state] for each in seen), key=_ORDER.index, default=State.IN_STEP)


def _finding(outcomes: Sequence[Outcome]) -> Finding:
    """The line of the cluster's page: how many stand how."""
    states = Counter(state_of(outcome.seen) for outcome in outcomes)
    numbers = {"all": len(outcomes), **{str(state.value): states[state] for state in State}}
    if states[State.MISSING] or states[State.DRIFTED]:
        return Finding(SPACES, Severity.WARNING, numbers)
    return Finding(SPACES, Severity.UNKNOWN if states[State.UNKNOWN] else Severity.OK, numbers)


def _told(seen: Seen) -> dict[str, Any]:
    fields = [[each.path, each.wanted, each.found] for each in seen.judgement.differences]
    told = {"kind": seen.kind, "name": seen.name, "state": seen.judgement.state, "fields": fields}
    return {**told, "error": seen.error, "is_recreated": seen.judgement.is_recreated}
