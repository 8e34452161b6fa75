"""Machines as the cluster reports them, and the share of each that is held."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from clusters.models.cluster import Cluster
from clusters.models.flavor import ResourceFlavor
from portal.core.models import TimestampedModel

# Faulty, in quarantine, in maintenance, or failing again and again: the few nodes that people are told of.
NEEDS_LOOK = (
    models.Q(is_faulty=True)
    | models.Q(fails_often=True)
    | models.Q(quarantined_at__isnull=False)
    | models.Q(maintenance_at__isnull=False)
)


class Node(TimestampedModel):
    """One machine. CPU in thousandths of a core, memory in MiB. A node that left keeps its row, with `gone_at`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    conditions = models.JSONField(default=dict)
    address = models.CharField(max_length=64, blank=True)
    kubelet_version = models.CharField(max_length=60, blank=True)
    container_runtime = models.CharField(max_length=80, blank=True)
    is_ready = models.BooleanField(default=False)
    is_cordoned = models.BooleanField(default=False)
    cpu_milli = models.BigIntegerField(default=0)
    memory_mib = models.BigIntegerField(default=0)
    pods = models.PositiveIntegerField(default=0)
    # What else it can allocate, by resource name: devices of any kind, those without a flavor among them.
    extended = models.JSONField(default=dict)
    # What pods that are not ours hold here.
    foreign_cpu_milli = models.BigIntegerField(default=0)
    foreign_memory_mib = models.BigIntegerField(default=0)
    foreign_pods = models.PositiveIntegerField(default=0)
    resource_version = models.CharField(max_length=40, blank=True)
    gone_at = models.DateTimeField(null=True)
    # A condition or taint says that something of it is broken.
    is_faulty = models.BooleanField(default=False)
    # What the portal itself decided; the watcher never touches these.
    quarantined_at = models.DateTimeField(null=True)
    quarantined_by = models.CharField(max_length=150, blank=True)  # empty: by the portal, after too many faults
    quarantine_reason = models.CharField(max_length=300, blank=True)
    # It failed as often as those in quarantine, but so did too many of its flavor: a person should look.
    fails_often = models.BooleanField(default=False)
    # Faults before this were looked at by a person, who let the node work again.
    faults_count_from = models.DateTimeField(null=True)
    # When gangs on it are stopped for its maintenance; nothing new is placed there from the asking on.
    maintenance_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "name"], name="node_name_once_per_cluster")]
        indexes = [
            models.Index(fields=["cluster", "gone_at"], name="node_present"),
            models.Index(fields=["cluster"], condition=NEEDS_LOOK, name="node_needs_look"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_closed(self) -> bool:
        """Whether nothing new is placed on it, ready or not; `closed_nodes` is the same for queries."""
        return self.is_cordoned or self.is_faulty or self.quarantined_at is not None or self.maintenance_at is not None


def closed_nodes(prefix: str = "") -> models.Q:
    """The condition that nothing new is placed on a node; `prefix` leads to it from another row."""
    return (
        models.Q(**{f"{prefix}is_cordoned": True})
        | models.Q(**{f"{prefix}is_faulty": True})
        | models.Q(**{f"{prefix}quarantined_at__isnull": False})
        | models.Q(**{f"{prefix}maintenance_at__isnull": False})
    )


class NodeAccelerator(models.Model):
    """How many GPUs of one flavor a node has, can give, gives to others, and holds for us."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="accelerators")
    flavor = models.ForeignKey(ResourceFlavor, on_delete=models.PROTECT, related_name="+")
    capacity = models.PositiveIntegerField(default=0)
    allocatable = models.PositiveIntegerField(default=0)
    foreign = models.PositiveIntegerField(default=0)
    # Written only by jobs' accounting of allocations, by guarded updates; the watcher never touches it.
    held = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "flavor"], name="accelerator_once_per_node"),
            models.CheckConstraint(condition=models.Q(held__gte=0), name="accelerator_held_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.allocatable} of {self.capacity} on {self.node_id}"


class NodeEvent(models.Model):
    """One line of a node's timeline."""

    class Kind(models.TextChoices):
        REGISTERED = "registered", _("registered")
        RETURNED = "returned", _("came back")
        GONE = "gone", _("left the cluster")
        READY = "ready", _("ready")
        NOT_READY = "not_ready", _("not ready")
        CORDONED = "cordoned", _("cordoned")
        UNCORDONED = "uncordoned", _("open again")
        DEVICE_LOST = "device_lost", _("lost devices")
        DEVICE_RECOVERED = "device_recovered", _("got devices back")
        RELABELED = "relabeled", _("moved in the topology")
        FAULT = "fault", _("fault")
        MENDED = "mended", _("mended")
        QUARANTINED = "quarantined", _("quarantined")
        RELEASED = "released", _("released from quarantine")
        MAINTENANCE = "maintenance", _("maintenance was asked for")
        DRAINED = "drained", _("empty, ready for maintenance")
        REOPENED = "reopened", _("maintenance ended")

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=Kind)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["node", "-at"], name="node_event_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.node_id}"
