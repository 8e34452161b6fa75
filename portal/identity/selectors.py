"""Reads about people and teams."""

from django.db.models import QuerySet

from portal.identity.models import Membership, Team, User


def visible_teams(user: User) -> QuerySet[Team]:
    """Return the teams that a person may see: the own ones; all, for an administrator of the platform."""
    teams = Team.objects.select_related("organization").order_by("name", "id")
    return teams if user.is_platform_admin else teams.filter(memberships__user=user)


def members_of(team: Team) -> QuerySet[Membership]:
    """Return the memberships of a team with their people, owners first."""
    return team.memberships.select_related("user").order_by("-role", "user__username")
