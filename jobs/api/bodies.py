"""What the body of a request asks for, and for which team: the same for a submission and for a preview of it."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from jobs.api.parsers import YamlText
from jobs.services import intake
from jobs.services.submit import Request, resolve
from portal.core.errors import InvalidInputError, NotAllowedError
from portal.core.rest.request import ApiRequest
from portal.identity.models import Team
from portal.identity.permissions import can_submit
from portal.identity.selectors import visible_teams


def asked_of(request: ApiRequest, body: object) -> Request:
    """Check a JobSpec, or YAML of ours or of Kubernetes, and find the rows behind its names. Raise DomainError.

    The query names the team before the body does, and fills in a queue and a priority that the body leaves open.
    """
    if request.stream is None:
        # curl sends nothing when it cannot read its file; a list of required fields would hide that.
        raise InvalidInputError({"": [_("The body is empty.")]}, code="empty_body")
    document = _document_of(body)
    team = _team_of(request, document)
    defaults = {name: request.query_params[name] for name in ("queue", "priority") if request.query_params.get(name)}
    given = {name: value for name, value in document.items() if value not in (None, "") or name not in defaults}
    spec = intake.read_document({**defaults, **given}, team=team)
    return resolve(spec, team=team, reader=request.user)


def _document_of(body: object) -> Mapping[str, object]:
    if isinstance(body, YamlText):
        return intake.document_of_yaml(body.text)
    if not isinstance(body, Mapping):
        raise InvalidInputError({"": [_("Send one JobSpec as an object.")]}, code="wrong_type")
    return body


def _team_of(request: ApiRequest, document: Mapping[str, object]) -> Team:
    """Return the team named by query or document, else the person's own. Raise DomainError."""
    named = intake.team_named_in(document)
    slug = request.query_params.get("team") or named
    team = request.team
    if slug:
        team = visible_teams(request.user).filter(slug=slug[:100]).first() if slug.isprintable() else None
    if team is None:
        raise InvalidInputError({"team": [_("Name a team of yours.")]}, code="unknown_team")
    if not can_submit(request.user, team):
        raise NotAllowedError(_("Your role in this team does not allow submitting jobs."))
    return team
