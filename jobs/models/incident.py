"""What a fault of a node cost a run."""

from django.db import models

from clusters.models import Node, NodeFault
from jobs.models.attempt import Attempt


class Incident(models.Model):
    """One gang, or one replica of a service, that was stopped since its node failed it."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="incidents")
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="incidents")
    # None: the node's fault was not seen as such, only what it did to the pod.
    fault = models.ForeignKey(NodeFault, on_delete=models.SET_NULL, null=True, related_name="incidents")
    kind = models.CharField(max_length=12, choices=NodeFault.Kind)
    message = models.CharField(max_length=500, blank=True)
    # The replica's pod; empty for a gang, which is hit whole.
    pod_uid = models.CharField(max_length=64, blank=True)
    detected_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    gpus = models.PositiveIntegerField()
    # What was computed since then is lost: the last checkpoint, else the start. None: nothing had started.
    lost_since = models.DateTimeField(null=True)
    is_from_checkpoint = models.BooleanField(default=False)
    lost_gpu_s = models.BigIntegerField(default=0)
    # At the prices of then, in hundredths of MUSTER_CURRENCY. None: a flavor of the run had no price.
    lost_cents = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "pod_uid"], name="incident_once_per_attempt")]
        indexes = [
            models.Index(fields=["-opened_at", "-id"], name="incident_newest"),
            models.Index(fields=["node", "-opened_at"], name="incident_node_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.attempt_id}"
