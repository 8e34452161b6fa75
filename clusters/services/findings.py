"""Write what the checks of a cluster found, and what follows from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from clusters.models import Cluster, ClusterFinding, Dispatch, Severity
from clusters.services.registration import target_of
from portal.core import clock
from portal.core.audit import SYSTEM, Actor, record
from portal.core.errors import DomainError
from portal.core.publish import publish

POLICY = "policy"
SPACES = "spaces"
GUARDS = "guards"
GROUPS = "native_gangs"
# Found by others than the probe: its round does not drop them.
_OF_OTHERS = frozenset({SPACES, GUARDS})


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: its name, how much it matters, and the numbers of its sentence."""

    code: str
    severity: Severity
    numbers: Mapping[str, object] = field(default_factory=dict)


@transaction.atomic
def write_findings(*, cluster: Cluster, findings: Iterable[Finding], is_whole_round: bool) -> None:
    """Write what changed, and let gangs be born pinned, and bound whole by the cluster itself, where it can do that.

    A whole round also drops what no check says any more. What could not be looked at changes nothing: what was true of
    it a minute ago is the best that is known.
    """
    now = clock.now()
    by_code = {finding.code: finding for finding in findings}
    # One writer at a time: two watchers of one cluster must not undo each other's rows.
    rows = ClusterFinding.objects.select_for_update(no_key=True).filter(cluster=cluster).order_by("code")
    known = {row.code: row for row in rows}
    news = [finding for finding in by_code.values() if _is_news(finding, known.get(finding.code))]
    _upsert(cluster, news, now)
    gone = known.keys() - by_code.keys() - _OF_OTHERS if is_whole_round else set()
    if gone:
        ClusterFinding.objects.filter(cluster=cluster, code__in=gone).delete()
    if is_whole_round:
        Cluster.objects.filter(pk=cluster.pk).update(probed_at=now)
    switched = [
        switch(cluster, by_code[code]) for code, switch in ((POLICY, _switch), (GROUPS, _regroup)) if code in by_code
    ]
    if news or gone or any(switched) or is_whole_round:
        publish(f"cluster:{cluster.pk}", cluster.name)


@transaction.atomic
def ask_for_checks(*, actor: Actor, cluster: Cluster) -> None:
    """Ask for all checks anew; the watcher of the cluster makes them soon. Raise DomainError if it has none."""
    now = clock.now()
    if not Cluster.objects.filter(pk=cluster.pk, is_enabled=True).update(probe_asked_at=now):
        raise DomainError(_("A disabled cluster is not checked: it is not watched at all."), code="cluster_disabled")
    record(actor, "cluster.checks_asked", target_of(cluster))


@transaction.atomic
def store_renewed_token(*, cluster: Cluster, token: str, expires_at: str) -> bool:
    """Keep a token that the cluster gave in place of the one of this row. False: somebody was faster.

    The version is not raised: no field that a person edits has changed.
    """
    # Whoever gave a new kubeconfig meanwhile raised the version, and what they gave counts.
    rows = Cluster.objects.filter(pk=cluster.pk, version=cluster.version, server=cluster.server)
    if not rows.update(token=token):
        return False
    record(SYSTEM, "cluster.token_renewed", target_of(cluster), after={"expires_at": expires_at})
    return True


def _is_news(finding: Finding, row: ClusterFinding | None) -> bool:
    return row is None or row.severity != finding.severity or row.numbers != dict(finding.numbers)


def _upsert(cluster: Cluster, news: Iterable[Finding], now: datetime) -> None:
    ClusterFinding.objects.bulk_create(
        [
            ClusterFinding(
                cluster=cluster,
                code=finding.code,
                severity=finding.severity,
                numbers=dict(finding.numbers),
                checked_at=now,
            )
            for finding in news
        ],
        update_conflicts=True,
        unique_fields=["cluster", "code"],
        update_fields=["severity", "numbers", "checked_at"],
    )


def _switch(cluster: Cluster, policy: Finding) -> bool:
    """Let gangs start as the policy allows. Wrong is safe, not fast: without it pods keep their gate."""
    if policy.severity == Severity.UNKNOWN:
        return False
    wanted = Dispatch.BORN_PINNED if policy.numbers.get("is") == "in_place" else Dispatch.GATES
    other = Dispatch.GATES if wanted == Dispatch.BORN_PINNED else Dispatch.BORN_PINNED
    if not Cluster.objects.filter(pk=cluster.pk, dispatch=other).update(dispatch=wanted):
        return False
    why = str(policy.numbers.get("is") or "")
    after = {"dispatch": str(wanted), "policy": why}
    record(SYSTEM, "cluster.dispatch_changed", target_of(cluster), before={"dispatch": str(other)}, after=after)
    return True


def _regroup(cluster: Cluster, groups: Finding) -> bool:
    """Make PodGroups where the cluster binds them whole. Wrong is safe: an attempt that gets none starts over."""
    if groups.severity == Severity.UNKNOWN:
        return False
    wanted = groups.numbers.get("is") == "ready"
    if not Cluster.objects.filter(pk=cluster.pk, has_pod_groups=not wanted).update(has_pod_groups=wanted):
        return False
    after = {"pod_groups": wanted, "why": str(groups.numbers.get("is") or "")}
    record(SYSTEM, "cluster.grouping_changed", target_of(cluster), before={"pod_groups": not wanted}, after=after)
    return True
