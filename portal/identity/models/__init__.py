"""People, their teams, their tokens."""

from portal.identity.models.guessing import AttemptCounter
from portal.identity.models.tenancy import Invitation, Membership, Organization, Team, TeamSecret
from portal.identity.models.token import ApiToken
from portal.identity.models.user import User

__all__ = ["ApiToken", "AttemptCounter", "Invitation", "Membership", "Organization", "Team", "TeamSecret", "User"]
