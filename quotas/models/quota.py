"""How much of a flavor a cohort or a queue may hold."""

from django.db import models

from clusters.models import ResourceFlavor
from portal.core.models import TimestampedModel
from quotas.models.queue import Cohort, Queue
from quotas.policy.limits import MAX_GPUS


class Quota(TimestampedModel):
    """Whole GPUs of one flavor for one cohort or queue. A queue without a row has none, a cohort without has no cap."""

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, null=True, related_name="quotas")
    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, null=True, related_name="quotas")
    flavor = models.ForeignKey(ResourceFlavor, on_delete=models.PROTECT, related_name="+")
    nominal = models.PositiveIntegerField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cohort__isnull=False, queue__isnull=True)
                | models.Q(cohort__isnull=True, queue__isnull=False),
                name="quota_of_one_owner",
            ),
            models.UniqueConstraint(
                fields=["cohort", "flavor"],
                condition=models.Q(cohort__isnull=False),
                name="quota_once_per_cohort",
            ),
            models.UniqueConstraint(
                fields=["queue", "flavor"],
                condition=models.Q(queue__isnull=False),
                name="quota_once_per_queue",
            ),
            models.CheckConstraint(
                condition=models.Q(nominal__gte=0, nominal__lte=MAX_GPUS), name="quota_nominal_in_range"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.nominal} of {self.flavor_id}"

    @property
    def owner(self) -> Cohort | Queue:
        """Whose quota it is."""
        if self.queue is not None:
            return self.queue
        if self.cohort is None:
            raise ValueError("a quota belongs to a cohort or a queue")
        return self.cohort
