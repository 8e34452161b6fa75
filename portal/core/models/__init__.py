"""Rows that name no noun of the product."""

from portal.core.models.audit import AuditEvent
from portal.core.models.base import TimestampedModel, new_uid
from portal.core.models.heartbeat import Heartbeat
from portal.core.models.idempotency import IdempotencyRecord
from portal.core.models.lease import Lease
from portal.core.models.outstanding import OutstandingTask

__all__ = [
    "AuditEvent",
    "Heartbeat",
    "IdempotencyRecord",
    "Lease",
    "OutstandingTask",
    "TimestampedModel",
    "new_uid",
]
