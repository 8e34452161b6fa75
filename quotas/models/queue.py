"""The quota tree: cohorts above, queues as its leaves."""

from django.db import models

from portal.core.models import TimestampedModel
from portal.identity.models import Organization, Team


class Cohort(TimestampedModel):
    """A node of the quota tree. Its own quota caps the sum of what lies below it."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="cohorts")
    name = models.CharField(max_length=60, unique=True)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            # No circle can exist, and ascending ids go down the tree: the order in which `usage` locks its counters.
            models.CheckConstraint(condition=models.Q(parent__lt=models.F("id")), name="cohort_below_an_older_one")
        ]

    def __str__(self) -> str:
        return self.name


class Queue(TimestampedModel):
    """What a team submits to: a leaf of the quota tree."""

    name = models.CharField(max_length=60, unique=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="queues")
    cohort = models.ForeignKey(Cohort, on_delete=models.PROTECT, related_name="queues")
    is_default = models.BooleanField(default=False)
    # A paused queue accepts jobs and starts none.
    is_paused = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team"], condition=models.Q(is_default=True), name="queue_default_once_per_team"
            )
        ]

    def __str__(self) -> str:
        return self.name
