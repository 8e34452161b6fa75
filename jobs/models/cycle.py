"""One run of the scheduler, and what it decided."""

from django.db import models

from jobs.models.job import Job


class Cycle(models.Model):
    """One cycle: its number is its id. Durations in milliseconds."""

    started_at = models.DateTimeField()
    snapshot_ms = models.PositiveIntegerField(default=0)
    decide_ms = models.PositiveIntegerField(default=0)
    apply_ms = models.PositiveIntegerField(default=0)
    pending = models.PositiveIntegerField(default=0)
    admitted = models.PositiveIntegerField(default=0)
    hosts = models.PositiveIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)

    class Meta:
        indexes = [models.Index(fields=["-started_at"], name="cycle_newest")]

    def __str__(self) -> str:
        return f"cycle {self.pk}"


class Decision(models.Model):
    """What a cycle decided about one job. Stored when it differs from the one before."""

    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="decisions")
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="decisions")
    is_admitted = models.BooleanField()
    code = models.CharField(max_length=30, blank=True)
    numbers = models.JSONField(default=dict)
    position = models.PositiveIntegerField(null=True)
    gpus_ahead = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cycle", "job"], name="decision_once_per_cycle")]
        indexes = [models.Index(fields=["job", "-id"], name="decision_newest")]

    def __str__(self) -> str:
        return f"{self.job_id} in cycle {self.cycle_id}"
