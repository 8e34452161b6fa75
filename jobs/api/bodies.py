"""What the body of a request asks for, and for which team: the same for a submission and for a preview of it."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from jobs.api.parsers import YamlText
from jobs.jobspec.fields import JobSpec
from jobs.services import intake
from portal.core.errors import DomainError, NotAllowedError
from portal.core.rest.request import ApiRequest
from portal.identity.models import Team
from portal.identity.permissions import can_submit
from portal.identity.selectors import visible_teams


def team_of(request: ApiRequest, body: object) -> Team:
    """Return the team named by query or body, else the person's own. Raise DomainError, NotAllowedError."""
    named = body.get("team") if isinstance(body, Mapping) else None
    slug = request.query_params.get("team") or (named if isinstance(named, str) else "")
    team = request.team
    if slug:
        team = visible_teams(request.user).filter(slug=slug[:100]).first() if slug.isprintable() else None
    if team is None:
        raise DomainError(_("Name a team of yours."), code="unknown_team", field="team")
    if not can_submit(request.user, team):
        raise NotAllowedError(_("Your role in this team does not allow submitting jobs."))
    return team


def spec_of(request: ApiRequest, body: object, team: Team) -> JobSpec:
    """Check a JobSpec, or YAML of ours or of Kubernetes; the query fills queue and priority in. Raise DomainError."""
    query = request.query_params
    defaults = {name: query[name] for name in ("queue", "priority") if query.get(name)}
    if isinstance(body, YamlText):
        return intake.read_yaml(body.text, team=team, defaults=defaults)
    if not isinstance(body, Mapping):
        raise DomainError(_("Send one JobSpec as an object."), code="wrong_type")
    return intake.read_document({**defaults, **body}, team=team)
