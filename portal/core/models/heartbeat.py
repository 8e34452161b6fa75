"""Signs of life of the portal's processes."""

from django.db import models


class Heartbeat(models.Model):
    """The last sign of life of one process (worker, beat, watch, collect)."""

    process = models.CharField(max_length=40, primary_key=True)
    seen_at = models.DateTimeField()
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.process
