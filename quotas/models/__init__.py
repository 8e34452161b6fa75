"""Rows of the entitlement: queues, quotas, priority."""

from quotas.models.priority import PriorityClass, PriorityGrant
from quotas.models.queue import Cohort, Queue
from quotas.models.quota import Quota
from quotas.models.space import Space, Tenancy
from quotas.models.usage import QuotaUsage

__all__ = ["Cohort", "PriorityClass", "PriorityGrant", "Queue", "Quota", "QuotaUsage", "Space", "Tenancy"]
