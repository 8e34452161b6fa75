"""What went wrong with a node, and the maintenance that takes one out of use."""

from datetime import datetime, timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from clusters.models.node import Node


class NodeFault(models.Model):
    """One thing that went wrong with a node, from when it was seen until it was mended.

    `subject` tells faults of one kind apart: the condition's type, the taint's key, the flavor's name, GPU and XID.
    """

    class Kind(models.TextChoices):
        NOT_READY = "not_ready", _("not ready")
        GONE = "gone", _("left the cluster")
        REPLACED = "replaced", _("made anew under its name")
        DEVICES = "devices", _("lost GPUs that were in use")
        XID = "xid", _("reported an error of a GPU")
        CONDITION = "condition", _("reports a fault")
        TAINT = "taint", _("is tainted as faulty")
        REFUSED = "refused", _("refused a pod that was given to it")
        EVICTED = "evicted", _("evicted its pods")

    # A node that leaves and comes back is often an autoscaler's doing: nothing is wrong with it.
    COUNTED = (Kind.NOT_READY, Kind.DEVICES, Kind.XID, Kind.CONDITION, Kind.TAINT, Kind.REFUSED)

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="faults")
    node_uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=12, choices=Kind)
    subject = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    detected_at = models.DateTimeField()
    # From then on gangs are stopped for it: what often mends itself within seconds gets these seconds. None: never.
    acts_at = models.DateTimeField(null=True)
    # Of a fault of one GPU: who had it, {"run", "rank", "pod"}; {} nobody of ours. None: all that was there is hit.
    holder = models.JSONField(null=True)
    cleared_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "kind", "subject"], condition=models.Q(cleared_at=None), name="fault_open_once"
            )
        ]
        indexes = [
            models.Index(fields=["node", "-detected_at"], name="fault_node_newest"),
            models.Index(fields=["-detected_at", "-id"], name="fault_newest"),
            models.Index(fields=["acts_at"], name="fault_acts"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} on {self.node_id}"

    @property
    def took(self) -> timedelta | None:
        """How long it lasted; None while it stands."""
        return self.cleared_at - self.detected_at if self.cleared_at else None


class NodeMaintenance(models.Model):
    """A node that an administrator takes out of use: nothing new from the asking on, nothing at all at the deadline."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waits for its deadline")
        DRAINING = "draining", _("is being emptied")
        DONE = "done", _("is empty, ready for maintenance")
        ENDED = "ended", _("ended, the node is open again")
        CANCELLED = "cancelled", _("cancelled")

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="maintenances")
    reason = models.CharField(max_length=300, blank=True)
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    # When nothing of ours was left on it.
    drained_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(ended_at=None), name="maintenance_live_once_per_node"
            )
        ]
        indexes = [models.Index(fields=["node", "-asked_at"], name="maintenance_node_newest")]

    def __str__(self) -> str:
        return f"maintenance of {self.node_id}"

    def state(self, now: datetime) -> State:
        """How far it is."""
        if self.ended_at is not None:
            return self.State.CANCELLED if self.drained_at is None else self.State.ENDED
        if self.drained_at is not None:
            return self.State.DONE
        return self.State.DRAINING if self.deadline_at <= now else self.State.WAITING
