"""Who changed what: an append-only log."""

from django.db import models


class AuditEvent(models.Model):
    """One act of a person or process. People are kept as plain ids so that the log outlives them."""

    at = models.DateTimeField()
    actor_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=150)
    token_id = models.CharField(max_length=64, blank=True)
    team_id = models.BigIntegerField(null=True)
    action = models.CharField(max_length=80)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    object_label = models.CharField(max_length=200, blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["-at", "-id"], name="audit_newest"),
            models.Index(fields=["team_id", "-at"], name="audit_team"),
            models.Index(fields=["object_type", "object_id"], name="audit_object"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_type} {self.object_id}"
