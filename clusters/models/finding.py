"""What the checks found out about a cluster."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from clusters.models.cluster import Cluster


class Severity(models.TextChoices):
    """How much a finding matters."""

    PROBLEM = "problem", _("Problem")
    WARNING = "warning", _("Warning")
    UNKNOWN = "unknown", _("Not known")
    OK = "ok", _("Fine")


class ClusterFinding(models.Model):
    """The answer of one check. `numbers` holds all that its sentence needs, and never a secret."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="findings")
    code = models.CharField(max_length=20)
    severity = models.CharField(max_length=8, choices=Severity)
    numbers = models.JSONField(default=dict)
    # The first round of checks that found exactly this. `Cluster.probed_at` is the newest round.
    checked_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "code"], name="finding_once_per_check")]

    def __str__(self) -> str:
        return f"{self.code} of {self.cluster_id}: {self.severity}"
