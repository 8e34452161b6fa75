"""What the clusters report of objects that carry our labels. The labels' values stay opaque here."""

from django.db import models

from clusters.models.cluster import Cluster


class ObservedPod(models.Model):
    """One pod of ours, as last seen. `run` and `attempt` are the labels that we wrote, `rank` the completion index."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="observed_pods")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    run = models.CharField(max_length=63)
    attempt = models.PositiveIntegerField()
    rank = models.IntegerField(null=True)
    node_name = models.CharField(max_length=253, blank=True)
    # The node that its required affinity names, once released.
    pinned_node = models.CharField(max_length=253, blank=True)
    phase = models.CharField(max_length=12, default="Pending")
    is_gated = models.BooleanField(default=False)
    foreign_gates = models.JSONField(default=list)
    is_scheduled = models.BooleanField(default=False)
    is_ready = models.BooleanField(default=False)
    is_deleting = models.BooleanField(default=False)
    gpus = models.PositiveIntegerField(default=0)
    ip = models.CharField(max_length=64, blank=True)
    restarts = models.PositiveIntegerField(default=0)
    # Why it is not further: reason and message of the waiting container, condition or pod, in that order.
    reason = models.CharField(max_length=80, blank=True)
    message = models.CharField(max_length=500, blank=True)
    exit_code = models.IntegerField(null=True)
    init_message = models.CharField(max_length=500, blank=True)
    # Reason of a DisruptionTarget condition: the infrastructure, not the user, ended it.
    disruption = models.CharField(max_length=80, blank=True)
    checkpoint_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    resource_version = models.CharField(max_length=40)
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="observed_pod_once")]
        indexes = [
            models.Index(fields=["run", "attempt"], name="observed_pod_run"),
            models.Index(fields=["cluster", "gone_at"], name="observed_pod_present"),
            models.Index(fields=["seen_at"], name="observed_pod_seen"),
        ]

    def __str__(self) -> str:
        return self.name


class ObservedObject(models.Model):
    """One Job, CronJob, StatefulSet or Deployment of ours, as last seen: its uid and its status, whole."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="observed_objects")
    kind = models.CharField(max_length=20)
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    run = models.CharField(max_length=63)
    attempt = models.PositiveIntegerField()
    is_suspended = models.BooleanField(default=False)
    is_deleting = models.BooleanField(default=False)
    # The object that controls it, a Job's CronJob for instance.
    owner_uid = models.CharField(max_length=64, blank=True)
    status = models.JSONField(default=dict)
    # The newest warning about it (FailedCreate and the like), since its own status does not tell.
    warning = models.CharField(max_length=500, blank=True)
    resource_version = models.CharField(max_length=40)
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="observed_object_once")]
        indexes = [
            models.Index(fields=["run", "attempt"], name="observed_object_run"),
            models.Index(fields=["seen_at"], name="observed_object_seen"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class PersistentClaim(models.Model):
    """A volume claim in a team's namespace: what a job may mount, and by how many nodes at once."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="claims")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    access_modes = models.JSONField(default=list)
    phase = models.CharField(max_length=12, blank=True)
    size = models.CharField(max_length=40, blank=True)
    storage_class = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="claim_once_per_namespace")
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
