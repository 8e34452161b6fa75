"""Which topics a person may hear. A topic of a foreign team is as missing as one that never was."""

from collections.abc import Iterable

from clusters.models import Cluster
from jobs.selectors.jobs import jobs_visible_to
from portal.identity.models import User
from portal.identity.selectors import visible_teams

MOST = 20
# What every signed-in person may hear of: supply is shared.
OPEN = frozenset({"queues", "clusters"})


def allowed_topics(user: User, asked: Iterable[str]) -> frozenset[str] | None:
    """Return the topics, or None when one of them is not for this person."""
    topics = frozenset(asked)
    if not topics or len(topics) > MOST:
        return None
    return topics if all(_may_hear(user, topic) for topic in topics) else None


def _may_hear(user: User, topic: str) -> bool:
    if topic in OPEN:
        return True
    kind, _colon, key = topic.partition(":")
    if not (key.isascii() and key.isalnum()):
        return False
    if kind == "job":
        return jobs_visible_to(user).filter(uid=key).exists()
    if not (key.isdecimal() and len(key) < 19):
        return False
    if kind == "team":
        return visible_teams(user).filter(pk=int(key)).exists()
    return kind in ("cluster", "telemetry") and Cluster.objects.filter(pk=int(key)).exists()
