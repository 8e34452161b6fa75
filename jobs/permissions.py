"""Who may do what to a job. Reading is decided by selectors: what a person may not see does not exist for them."""

from jobs.models import Job
from portal.identity.models import Membership, User

Role = Membership.Role


def can_control(user: User, role: str | None, job: Job) -> bool:
    """Return whether the person may stop, scale and label the job.

    Members their own jobs; owners of the team and administrators of the platform all of the team's.
    """
    if user.is_platform_admin or role == Role.OWNER:
        return True
    return role == Role.MEMBER and job.owner_id == user.pk
