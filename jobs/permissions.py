"""Who may do what to a job. Reading is decided by selectors: what a person may not see does not exist for them."""

from jobs.models import Job
from portal.identity.models import Membership, User

Role = Membership.Role


def can_submit(user: User, role: str | None) -> bool:
    """Owners and members of a team start jobs in it, and so may an administrator."""
    return user.is_platform_admin or role in (Role.OWNER, Role.MEMBER)


def can_control(user: User, role: str | None, job: Job) -> bool:
    """A member stops, scales and labels their own jobs; owners and administrators those of the whole team."""
    if user.is_platform_admin or role == Role.OWNER:
        return True
    return role == Role.MEMBER and job.owner_id == user.pk
