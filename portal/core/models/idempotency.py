"""Answers that were given to requests with an idempotency key."""

from django.db import models


class IdempotencyRecord(models.Model):
    """One key of one person: what was asked (a digest) and what was answered."""

    user_id = models.BigIntegerField()
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]
        constraints = [models.UniqueConstraint(fields=["user_id", "key"], name="idempotency_key_once_per_user")]

    def __str__(self) -> str:
        return self.key
