"""Reads about people, teams, tokens and what they did."""

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from portal.core import clock
from portal.core.models import AuditEvent
from portal.identity.models import ApiToken, Membership, Team, User


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What a reader of the log asks for; empty means any."""

    actor: str = ""
    action: str = ""
    team: str = ""


def visible_teams(user: User) -> QuerySet[Team]:
    """Return the teams that a person may see: the own ones; all, for an administrator of the platform."""
    teams = Team.objects.select_related("organization").order_by("name", "id")
    return teams if user.is_platform_admin else teams.filter(memberships__user=user)


def teams_with_sizes(user: User) -> QuerySet[Team]:
    """Return the visible teams, each with its number of members as `size`."""
    # Counted over a fresh query: the one of the visible teams sees only the person's own memberships.
    teams = Team.objects.filter(pk__in=visible_teams(user).order_by().values("pk"))
    return teams.select_related("organization").annotate(size=Count("memberships")).order_by("name", "id")


def members_of(team: Team) -> QuerySet[Membership]:
    """Return the memberships of a team with their people, in the order of their names."""
    return team.memberships.select_related("user").order_by("user__username")


def live_tokens(user: User) -> QuerySet[ApiToken]:
    """Return the person's tokens that work, newest first."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.filter(user=user, revoked_at=None)
    return tokens.filter(Q(expiry=None) | Q(expiry__gt=clock.now())).order_by("-created", "token_key")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Return all tokens of the person, newest first; those that ended are kept for the record."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.filter(user=user)
    return tokens.order_by("-created", "token_key")


def people(query: str) -> QuerySet[User]:
    """Return people whose name or address holds the text, with their teams."""
    found = User.objects.prefetch_related("teams")
    if query:
        found = found.filter(Q(username__icontains=query) | Q(email__icontains=query))
    return found


def audited_teams(user: User) -> QuerySet[Team]:
    """Return the teams whose log a person may read: all for an administrator, else those the person owns."""
    if user.is_platform_admin:
        return Team.objects.order_by("name", "id")
    owned = Membership.objects.filter(user=user, role=Membership.Role.OWNER)
    return Team.objects.filter(pk__in=owned.values("team_id")).order_by("name", "id")


def audit_log(user: User, wanted: AuditFilter) -> QuerySet[AuditEvent]:
    """Return the events that a person may read, for `keyset_page` with the order ("-at", "-id")."""
    events = AuditEvent.objects.all()
    teams = audited_teams(user)
    if wanted.team:
        events = events.filter(team_id__in=list(teams.filter(slug=wanted.team).values_list("pk", flat=True)))
    elif not user.is_platform_admin:
        events = events.filter(team_id__in=list(teams.values_list("pk", flat=True)))
    if wanted.actor:
        events = events.filter(actor=wanted.actor)
    if wanted.action:
        events = events.filter(action__startswith=wanted.action)
    return events


def team_namespaces() -> list[str]:
    """Return the namespaces of all teams, the oldest team's first: each has one of this name on every cluster."""
    return list(Team.objects.order_by("pk").values_list("namespace", flat=True))
