"""Which jobs a person sees, and what lists and pages read of them."""

from django.db.models import Exists, OuterRef, QuerySet

from jobs.models import Job
from portal.identity.models import Membership, User


def jobs_visible_to(user: User) -> QuerySet[Job]:
    """The jobs of the person's teams; an administrator sees all."""
    rows = Job.objects.select_related("team", "queue", "owner", "priority_class")
    if user.is_platform_admin:
        return rows
    return rows.filter(Exists(Membership.objects.filter(team=OuterRef("team"), user=user)))


def services_visible_to(user: User) -> QuerySet[Job]:
    """Those of them that serve."""
    return jobs_visible_to(user).filter(kind=Job.Kind.INFERENCE)
