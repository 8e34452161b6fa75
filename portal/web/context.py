"""What the frame of every page needs, read only when the frame is drawn."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from clusters.models import NEEDS_LOOK, Cluster, Node
from portal.core import clock, heartbeat
from portal.identity.models import Team, User

THEME_COOKIE = "muster_theme"

# Pages that stand below an entry of the rail, by the entry's URL name.
SECTIONS = {
    "jobs:detail": "jobs:list",
    "jobs:new_training": "jobs:list",
    "jobs:new_service": "jobs:services",
    "clusters:detail": "clusters:list",
    "clusters:node": "clusters:list",
    "clusters:new": "clusters:list",
    "clusters:edit": "clusters:list",
    "clusters:levels": "clusters:list",
    "clusters:flavors": "clusters:list",
    "clusters:flavor": "clusters:list",
}


@dataclass(frozen=True)
class ClusterCounts:
    """How many clusters take part, how many of them are simulated, and how many were not heard of lately."""

    total: int
    simulated: int
    stale: int
    # Nodes that people should look at: faulty, in quarantine or maintenance, or failing too often.
    troubled: int = 0


class Shell:
    """The frame's values. Costs no query for a visitor who has not signed in, and two for a person."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def user(self) -> User | None:
        """The person signed in, if any (a request that failed early has no user at all)."""
        user = getattr(self._request, "user", None)
        return user if isinstance(user, User) or getattr(user, "is_authenticated", False) else None

    @property
    def is_admin(self) -> bool:
        """Whether the rail shows what only platform administrators may open."""
        return self.user is not None and self.user.is_platform_admin

    @property
    def team(self) -> Team | None:
        """The team that the person works for now."""
        return getattr(self._request, "team", None) if self.user else None

    @property
    def teams(self) -> list[Team]:
        """The teams among which the person may switch."""
        return list(getattr(self._request, "teams", ())) if self.user else []

    @property
    def theme(self) -> str:
        """`auto`, `light` or `dark`: the choice made in this browser, else the person's own."""
        chosen = self._request.COOKIES.get(THEME_COOKIE) or (self.user.theme if self.user else "")
        return chosen if chosen in User.Theme.values else User.Theme.AUTO

    @property
    def section(self) -> str:
        """The URL name of the rail's entry that the page belongs to."""
        match = self._request.resolver_match
        return SECTIONS.get(match.view_name, match.view_name) if match else ""

    @property
    def view_name(self) -> str:
        """The URL name of the page."""
        match = self._request.resolver_match
        return match.view_name if match else ""

    @cached_property
    def stale_processes(self) -> tuple[str, ...]:
        """The portal's own processes that were not heard of lately (one query)."""
        return heartbeat.stale_processes() if self.user else ()

    @cached_property
    def clusters(self) -> ClusterCounts:
        """Counts of the clusters that take part (one query; no row of a job is ever counted for a frame)."""
        if self.user is None:
            return ClusterCounts(0, 0, 0)
        rows = list(Cluster.objects.filter(is_enabled=True).values_list("is_simulated", "heard_at", _troubled()))
        oldest = clock.now() - timedelta(seconds=settings.MUSTER_STALE_AFTER_S)
        return ClusterCounts(
            total=len(rows),
            simulated=sum(is_simulated for is_simulated, _heard_at, _troubled in rows),
            stale=sum(_is_stale(heard_at, oldest) for _is_simulated, heard_at, _troubled in rows),
            troubled=sum(troubled for _is_simulated, _heard_at, troubled in rows),
        )


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the frame's values, under one name, so that no page's own names meet them."""
    return {"shell": Shell(request)}


def _troubled() -> Coalesce:
    """How many nodes of a cluster need a look, by an index that holds only those."""
    rows = Node.objects.filter(NEEDS_LOOK, cluster=OuterRef("pk"), gone_at=None).order_by().values("cluster")
    return Coalesce(Subquery(rows.annotate(n=Count("pk")).values("n")), 0)


def _is_stale(heard_at: datetime | None, oldest: datetime) -> bool:
    return heard_at is None or heard_at < oldest
