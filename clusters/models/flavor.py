"""Classes of interchangeable nodes."""

from django.db import models

from portal.core.models import TimestampedModel


class ResourceFlavor(TimestampedModel):
    """A class of interchangeable nodes: the unit in which quota is given. Data, not code: any vendor fits.

    A node offers the flavor when its label `label_key` has `label_value` and it can allocate `resource_name`.
    """

    name = models.CharField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    resource_name = models.CharField(max_length=317, default="nvidia.com/gpu")
    label_key = models.CharField(max_length=317, default="nvidia.com/gpu.product")
    label_value = models.CharField(max_length=63)
    memory_mib = models.PositiveIntegerField(default=0)
    link = models.CharField(max_length=40, blank=True)
    # The administrator's order: what a job without a wish tries first.
    rank = models.PositiveSmallIntegerField(default=100)
    # Of one GPU for one hour, in hundredths of MUSTER_CURRENCY; 0: it has no price.
    price_cents = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["rank", "name"]
        constraints = [
            models.UniqueConstraint(fields=["resource_name", "label_key", "label_value"], name="flavor_selector_once")
        ]

    def __str__(self) -> str:
        return self.name
