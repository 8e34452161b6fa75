"""A registered Kubernetes cluster and the levels of its topology."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.core.crypto import EncryptedTextField
from portal.core.models import TimestampedModel

dns_label = RegexValidator(
    r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
    _("Use 1 to 40 lower-case letters, digits and hyphens, starting with a letter."),
)


class Dispatch(models.TextChoices):
    """How each rank of a gang comes to its node. Services always stand at gates: their pods have no rank."""

    GATES = "gates", _("Gates")  # level L0: a gate holds each pod; one patch a rank pins it and opens the gate
    BORN_PINNED = "born_pinned", _("Born pinned")  # level B: a policy of the cluster pins each pod at its creation


class Cluster(TimestampedModel):
    """One Kubernetes cluster. Only server, CA and token of its kubeconfig are kept."""

    name = models.CharField(max_length=40, unique=True, validators=[dns_label])
    server = models.CharField(max_length=300)
    ca_data = models.TextField(blank=True)
    token = EncryptedTextField(blank=True)
    # "{node}" and "{address}" stand for the node's name and internal address; empty: no telemetry from this cluster.
    exporter_url = models.CharField(max_length=300, blank=True)
    is_simulated = models.BooleanField(default=False)
    # Simulated by its nodes alone: the control plane is real Kubernetes, and KWOK stands in for the kubelets.
    has_fake_nodes = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    kubernetes_version = models.CharField(max_length=60, blank=True)
    # What the last probe found that the cluster can do. Wrong is safe: pods without their policy keep their gate.
    dispatch = models.CharField(max_length=12, choices=Dispatch, default=Dispatch.GATES)
    # Whether its scheduler binds all pods of a PodGroup or none, and lets us make one (level L1, on top of the above).
    has_pod_groups = models.BooleanField(default=False)
    # The last time that any answer or watch event came; older than MUSTER_STALE_AFTER_S means stale.
    heard_at = models.DateTimeField(null=True)
    # The last complete list of nodes and pods; null until the first one: nothing is placed before it.
    synced_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    # When a person last asked for the checks, and when all of them were last made.
    probe_asked_at = models.DateTimeField(null=True)
    probed_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class TopologyLevel(models.Model):
    """One level of a cluster's topology, widest first. The node itself is the last level and needs no row."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="levels")
    depth = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=20)
    label_key = models.CharField(max_length=317)

    class Meta:
        ordering = ["cluster_id", "depth"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "depth"], name="topology_level_depth_once"),
            models.UniqueConstraint(fields=["cluster", "name"], name="topology_level_name_once"),
        ]

    def __str__(self) -> str:
        return self.name
