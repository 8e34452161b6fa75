"""What the API server says about itself: version, clock, and which engines it knows."""

from collections.abc import Collection, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from clusters.manifests.versions import OLDEST, is_too_old, minor_of
from clusters.models import Severity
from clusters.services.findings import Finding

MOST_SKEW_S = 5.0
# API group -> the engine that brings it.
ENGINES = {"kueue.x-k8s.io": "Kueue", "scheduling.volcano.sh": "Volcano", "scheduling.run.ai": "KAI"}


def version(document: Mapping[str, object]) -> Finding:
    """Refuse what is older than the mechanism that starts gangs."""
    text = str(document.get("gitVersion") or "")
    if minor_of(text) is None:
        return Finding("version", Severity.UNKNOWN, {"version": text[:60]})
    is_old = is_too_old(text)
    numbers = {"version": text[:60], "oldest": ".".join(map(str, OLDEST)), "is_old": is_old}
    return Finding("version", Severity.PROBLEM if is_old else Severity.OK, numbers)


def clock_skew(told: str, before: datetime, after: datetime) -> Finding:
    """Compare the server's time of day with ours, taken before it was asked and after it answered.

    The header has whole seconds, so the server means any moment of that second, and we saw any moment between.
    Only what neither explains is skew: positive when the server is ahead.
    """
    try:
        server = parsedate_to_datetime(told)
        late, early = (server - after).total_seconds(), (server - before).total_seconds() + 1.0
    except (ValueError, TypeError):
        return Finding("clock", Severity.UNKNOWN)
    skew_s = late if late > 0 else min(early, 0.0)
    severity = Severity.WARNING if abs(skew_s) > MOST_SKEW_S else Severity.OK
    return Finding("clock", severity, {"seconds": round(skew_s), "most": round(MOST_SKEW_S)})


def engines(group_versions: Collection[str]) -> Finding:
    """Tell which other engines are installed."""
    groups = {each.partition("/")[0] for each in group_versions}
    return Finding("engines", Severity.OK, {"found": [name for group, name in ENGINES.items() if group in groups]})
