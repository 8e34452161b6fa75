"""The space of each team on each cluster, as it was last seen, and what an administrator wants of it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster
from portal.core.models import TimestampedModel
from portal.identity.models import Team


class Guard(models.TextChoices):
    """What the cluster's policies do about a by-pass."""

    OFF = "off", _("None wanted")
    AUDIT = "audit", _("Tell")
    DENY = "deny", _("Refuse")


class Tenancy(TimestampedModel):
    """How the spaces of one cluster are kept. Without a row: looked at, and changed by nobody."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="tenancy")
    # Kept: what is missing or was changed here is applied; what somebody changed there waits for a person.
    is_kept = models.BooleanField(default=False)
    # An administrator of the cluster applies them: who may write policies may take them away.
    guard = models.CharField(max_length=5, choices=Guard, default=Guard.OFF)
    # When all of it was last looked at, and what the cluster did not let us do.
    checked_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=300, blank=True)
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return f"tenancy of {self.cluster_id}"


class Space(models.Model):
    """What one team has on one cluster; without a team, what the cluster has for all of them: the priority ladder."""

    class State(models.TextChoices):
        """How it stands: the worst of its objects."""

        IN_STEP = "in_step", _("In step")
        DRIFTED = "drifted", _("Drifted")
        MISSING = "missing", _("Missing")
        UNKNOWN = "unknown", _("Not known")

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="spaces")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="spaces")
    state = models.CharField(max_length=8, choices=State, default=State.UNKNOWN)
    # [{"kind", "name", "state", "fields": [[path, wanted, found], ...], "error"}, ...]
    objects_seen = models.JSONField(default=list)
    # The first look that found exactly this.
    since = models.DateTimeField(null=True)
    # A person wants it applied; null again once that was tried.
    asked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "team"], condition=models.Q(team__isnull=False), name="space_once_per_team"
            ),
            models.UniqueConstraint(
                fields=["cluster"], condition=models.Q(team__isnull=True), name="space_once_without_team"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} on {self.cluster_id}: {self.state}"
