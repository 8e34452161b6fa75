"""What the checks of a cluster found, as far as a person may know."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from clusters.models import ClusterFinding, Severity

# What matters most comes first; within that, from what everything needs to what is only told.
_SEVERITIES = list(Severity)
_CODES = (
    *("version", "rights", "token", "canary", "clock", "policy", "spaces", "guards"),
    *("accelerators", "topology", "taint", "native_gangs", "engines"),
)
_FIELDS = ("code", "severity", "numbers", "checked_at")


def stored_findings() -> ArraySubquery:
    """Return the findings of a cluster as a column of its row, for `as_findings`: a page needs no query for them."""
    fields = {name: name for name in _FIELDS}
    return ArraySubquery(ClusterFinding.objects.filter(cluster=OuterRef("pk")).values(json=JSONObject(**fields)))


def as_findings(stored: Iterable[Mapping[str, Any]]) -> list[ClusterFinding]:
    """Return the rows that such a column holds, not bound to the database."""
    return [
        ClusterFinding(**{**values, "checked_at": datetime.fromisoformat(values["checked_at"])}) for values in stored
    ]


def readable(findings: Iterable[ClusterFinding], *, is_administrator: bool) -> Sequence[ClusterFinding]:
    """Return all findings for an administrator, the problems for everybody else; the worst first."""
    seen = (each for each in findings if is_administrator or each.severity == Severity.PROBLEM)
    return sorted(seen, key=_order)


def _order(finding: ClusterFinding) -> tuple[int, int, str]:
    place = _CODES.index(finding.code) if finding.code in _CODES else len(_CODES)
    return _SEVERITIES.index(Severity(finding.severity)), place, finding.code
