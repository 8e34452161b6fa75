"""The request as our middleware hands it to a view."""

from typing import TYPE_CHECKING

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

if TYPE_CHECKING:  # names only: the ground does not load the floor above it
    from portal.identity.models import Team, User


class Request(HttpRequest):
    """What a page behind `login_required` gets. Teams and roles are read at the first question, with one query."""

    htmx: HtmxDetails
    user: "User"
    team: "Team | None"
    teams: "list[Team]"
    roles: "dict[int, str]"
