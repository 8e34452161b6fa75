"""One try to run a job on a cluster."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from clusters.models import Cluster, Dispatch
from jobs.models.job import Job
from portal.core.models import TimestampedModel


class Attempt(TimestampedModel):
    """One try. Attempt n+1 never starts before n is proven over.

    The driver claims due attempts: it raises `fence` and writes only where its fence still stands, so a worker
    that was paused or doubled changes nothing.
    """

    class Step(models.TextChoices):
        PLANNED = "planned", _("Planned")  # S0: place held, nothing sent
        CREATED = "created", _("Created")  # S1: the suspended object exists
        ATTACHED = "attached", _("Prepared")  # S2: what it owns exists
        GATHERING = "gathering", _("Gathering")  # S3-S4: opened, waits until all its pods stand at the gate
        RELEASING = "releasing", _("Releasing")  # S5: each pod gets its node
        STARTING = "starting", _("Starting")  # S6: pods are bound and come up
        RUNNING = "running", _("Running")  # S7
        STOPPING = "stopping", _("Stopping")  # S9: deletion asked for, proof awaited
        ENDED = "ended", _("Ended")

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="attempts")
    namespace = models.CharField(max_length=63)
    object_name = models.CharField(max_length=63)
    object_uid = models.CharField(max_length=64, blank=True)
    # As its cluster was when the place was decided: every try of a step renders the same objects.
    dispatch = models.CharField(max_length=12, choices=Dispatch, default=Dispatch.GATES)
    # The same: whether a gang of Jobs is a PodGroup, of which the cluster's own scheduler binds all pods or none.
    is_grouped = models.BooleanField(default=False)
    workers = models.PositiveIntegerField()
    # The lowest topology level whose one domain holds all ranks.
    level = models.CharField(max_length=20, blank=True)
    # What the pods ask for, "nvidia.com/gpu": one for the whole attempt, replicas that join later included.
    resource_name = models.CharField(max_length=317)
    step = models.CharField(max_length=10, choices=Step, default=Step.PLANNED)
    step_at = models.DateTimeField()
    due_at = models.DateTimeField()
    # What was observed after this has not been looked at yet.
    looked_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    # Why it is being stopped (an outcome code), in words for people, and the rank that caused it.
    stop_code = models.CharField(max_length=20, blank=True)
    stop_message = models.CharField(max_length=500, blank=True)
    stop_rank = models.IntegerField(null=True)
    stop_exit_code = models.IntegerField(null=True)
    # The node at fault, which the run avoids from then on.
    stop_node_id = models.BigIntegerField(null=True)
    # Whether the job queues again after the proof.
    stop_requeues = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_once_per_job"),
            models.UniqueConstraint(
                fields=["job"], condition=~models.Q(step="ended"), name="attempt_live_once_per_job"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=~models.Q(step="ended"), name="attempt_due"),
        ]

    def __str__(self) -> str:
        return self.object_name
