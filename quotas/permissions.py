"""Who sees what of the quota tree.

Within an organization everybody sees all queues with their numbers, since people need to know who holds what.
Another organization's tree does not exist for them. Only administrators of the platform change anything.
"""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from portal.identity.models import Organization, Team, User
from quotas.models import Queue, Quota


def can_edit_policy(user: User) -> bool:
    """Return whether the person may change quotas, queues and priorities."""
    return user.is_platform_admin


def visible_organizations(user: User) -> QuerySet[Organization]:
    """Return the organizations whose trees a person may see: those of the own teams; all, for an administrator."""
    organizations = Organization.objects.order_by("name", "id")
    if user.is_platform_admin:
        return organizations
    own = Team.objects.filter(memberships__user=user)
    return organizations.filter(pk__in=own.values("organization_id"))


def visible_queues(user: User) -> QuerySet[Queue]:
    """Return the queues of the organizations that a person may see."""
    queues = Queue.objects.select_related("team", "cohort").order_by("name", "id")
    return queues.filter(team__organization__in=visible_organizations(user))


def visible_quotas(user: User) -> QuerySet[Quota]:
    """Return the quotas in the organizations that a person may see."""
    organizations = visible_organizations(user)
    rows = Quota.objects.select_related("cohort", "queue__cohort", "flavor")
    of_queues = rows.filter(queue__team__organization__in=organizations)
    return (of_queues | rows.filter(cohort__organization__in=organizations)).order_by("id")


def get_queue_or_404(user: User, queue_id: int) -> Queue:
    """Return the queue if the person may see it; a foreign one is as missing as one that never was."""
    return get_object_or_404(visible_queues(user), pk=queue_id)
