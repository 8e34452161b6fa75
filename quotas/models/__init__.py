"""Rows of the entitlement: queues, quotas, priority."""

from quotas.models.priority import PriorityClass, PriorityGrant
from quotas.models.queue import Cohort, Queue
from quotas.models.quota import Quota
from quotas.models.space import Guard, Space, Tenancy
from quotas.models.usage import QuotaUsage

__all__ = ["Cohort", "Guard", "PriorityClass", "PriorityGrant", "Queue", "Quota", "QuotaUsage", "Space", "Tenancy"]
