"""People, their teams, their tokens."""

from portal.identity.models.tenancy import Invitation, Membership, Organization, Team, TeamSecret
from portal.identity.models.token import ApiToken
from portal.identity.models.user import User

__all__ = ["ApiToken", "Invitation", "Membership", "Organization", "Team", "TeamSecret", "User"]
