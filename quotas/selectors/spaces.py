"""How the spaces of teams stand, as far as a person may know."""

from django.db.models import F, Q, QuerySet

from clusters.models import Cluster
from portal.identity.models import Team, User
from portal.identity.selectors import visible_teams
from quotas.models import Space, Tenancy


def visible_spaces(user: User) -> QuerySet[Space]:
    """Return the spaces of the person's teams; for an administrator all, and what clusters have for all teams."""
    seen = Q(team__in=visible_teams(user).order_by().values("pk"))
    if user.is_platform_admin:
        seen |= Q(team=None)
    return Space.objects.filter(seen).select_related("cluster", "team")


def of_team(team: Team) -> list[Space]:
    """Return the spaces of a team, by cluster. One query."""
    rows = Space.objects.filter(team=team, cluster__is_enabled=True)
    return list(rows.select_related("cluster").order_by("cluster__name"))


def spaces_of(cluster: Cluster) -> list[Space]:
    """Return what the page of a cluster's spaces shows: what all teams share first, then by namespace."""
    rows = Space.objects.filter(cluster=cluster).select_related("team")
    return list(rows.order_by(F("team__namespace").asc(nulls_first=True)))


def tenancy_of(cluster: Cluster) -> Tenancy:
    """Return how the spaces of a cluster are kept; one that nobody has looked at yet is not stored."""
    return Tenancy.objects.filter(cluster=cluster).first() or Tenancy(cluster=cluster)
