"""The request of the REST API as our middleware and authentication leave it."""

from typing import TYPE_CHECKING

from rest_framework.request import Request

if TYPE_CHECKING:  # names only: the ground does not load the floor above it
    from portal.identity.models import ApiToken, Team, User


class ApiRequest(Request):
    """For annotations: what a view behind `IsAuthenticated` gets. `auth` is None for a browser's session."""

    user: "User"
    auth: "ApiToken | None"
    team: "Team | None"
    teams: "list[Team]"
    roles: "dict[int, str]"
