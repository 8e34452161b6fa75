"""The request as our middleware hands it to a view."""

from typing import TYPE_CHECKING

import structlog
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


def request_id() -> str:
    """Return the id under which the log knows the request that is being answered; empty outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
