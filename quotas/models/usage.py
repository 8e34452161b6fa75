"""How much of a flavor is reserved now: the counters that the guards of admission check."""

from django.db import models

from clusters.models import ResourceFlavor
from quotas.models.queue import Cohort, Queue


class QuotaUsage(models.Model):
    """GPUs of one flavor reserved below one cohort or in one queue. Changed only by guarded updates of `usage`."""

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, null=True, related_name="usage")
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, null=True, related_name="usage")
    flavor = models.ForeignKey(ResourceFlavor, on_delete=models.PROTECT, related_name="+")
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cohort__isnull=False, queue__isnull=True)
                | models.Q(cohort__isnull=True, queue__isnull=False),
                name="usage_of_one_owner",
            ),
            models.UniqueConstraint(
                fields=["cohort", "flavor"],
                condition=models.Q(cohort__isnull=False),
                name="usage_once_per_cohort",
            ),
            models.UniqueConstraint(
                fields=["queue", "flavor"],
                condition=models.Q(queue__isnull=False),
                name="usage_once_per_queue",
            ),
            models.CheckConstraint(condition=models.Q(used__gte=0), name="usage_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.used} of {self.flavor_id}"
