"""What a person asked for, and how it stands."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.core.models import TimestampedModel, new_uid
from portal.identity.models import Team
from quotas.models import PriorityClass, Queue


class JobName(models.Model):
    """The last number given to a name in a team, so that the n-th run of a name is name-n."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=63)
    last_number = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="job_name_once_per_team")]

    def __str__(self) -> str:
        return f"{self.name}-{self.last_number}"


class Job(TimestampedModel):
    """One run. `spec` is the checked JobSpec document; the columns below it are what lists and the scheduler read."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        ADMITTED = "admitted", _("Admitted")
        STARTING = "starting", _("Starting")
        RUNNING = "running", _("Running")
        STOPPING = "stopping", _("Stopping")
        SUCCEEDED = "succeeded", _("Succeeded")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    class Kind(models.TextChoices):
        TRAINING = "training", _("Training")
        INFERENCE = "inference", _("Inference")

    class Outcome(models.TextChoices):
        USER_ERROR = "user_error", _("The program failed")
        OOM = "oom", _("Out of memory")
        IMAGE_PULL = "image_pull", _("The image could not be pulled")
        CODE_CHECKOUT = "code_checkout", _("The code could not be checked out")
        MOUNT = "mount", _("A volume could not be mounted")
        REFUSED = "refused", _("The cluster refused it")
        TIMEOUT = "timeout", _("The time limit was reached")
        PREEMPTED = "preempted", _("Preempted")
        NODE_LOST = "node_lost", _("A node was lost")
        MAINTENANCE = "maintenance", _("A node was taken for maintenance")
        CANCELLED = "cancelled", _("Cancelled")
        DEPENDENCY_FAILED = "dependency_failed", _("What it depends on failed")

    HOLDING = (State.ADMITTED, State.STARTING, State.RUNNING, State.STOPPING)
    FINAL = (State.SUCCEEDED, State.FAILED, State.CANCELLED)

    uid = models.CharField(max_length=12, unique=True, default=new_uid, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="jobs")
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=63)
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=9, choices=Kind)
    workload = models.CharField(max_length=12)
    spec = models.JSONField()
    labels = models.JSONField(default=dict)
    parent = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="children")

    # Of a schedule (workload "cronjob"): it makes no runs for now. Itself it wants no workers; its runs do.
    is_paused = models.BooleanField(default=False)
    # Of a run that a schedule made: the uid of its first Job on the cluster, and what is known of it:
    # "name", "resource_name" (what its pods ask for), "schedule" and "schedule_name" (the uid of the schedule, and
    # what it is called there), "due_at" (absent when a person made it).
    adopts = models.CharField(max_length=64, blank=True)
    adopted = models.JSONField(default=dict)

    # What the scheduler reads. Workers of a service are its replicas; CPU (thousandths of a core) and memory (MiB)
    # are for one worker.
    priority_class = models.ForeignKey(PriorityClass, on_delete=models.PROTECT, related_name="+")
    priority = models.IntegerField()
    workers = models.PositiveIntegerField()
    min_workers = models.PositiveIntegerField()
    gpus_per_worker = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField()
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    # Flavors in order of preference (empty: any with quota) and the clusters that qualify (empty: any), by id.
    flavor_ids = models.JSONField(default=list)
    cluster_ids = models.JSONField(default=list)
    topology_mode = models.CharField(max_length=7, default="none")
    topology_level = models.CharField(max_length=20, blank=True)
    spread_policy = models.CharField(max_length=6, default="auto")
    tolerations = models.JSONField(default=list)

    # How it stands. Only jobs.transitions writes state.
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    version = models.PositiveIntegerField(default=1)
    reason_code = models.CharField(max_length=30, blank=True)
    reason_numbers = models.JSONField(default=dict)
    position = models.PositiveIntegerField(null=True)
    gpus_ahead = models.PositiveIntegerField(null=True)
    attempts_made = models.PositiveIntegerField(default=0)
    # Nodes that this run must not use for now: {"node": id, "name", "why", "at", "until"}, the oldest first.
    exclusions = models.JSONField(default=list)
    outcome_code = models.CharField(max_length=20, choices=Outcome, blank=True)
    outcome_rank = models.IntegerField(null=True)
    outcome_message = models.CharField(max_length=500, blank=True)
    exit_code = models.IntegerField(null=True)
    commit = models.CharField(max_length=64, blank=True)
    warnings = models.JSONField(default=list)
    cancel_requested_at = models.DateTimeField(null=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    admitted_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Made up by the seed, and said so on its page.
    is_synthetic = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name", "number"], name="job_number_once_per_name"),
            models.CheckConstraint(
                condition=models.Q(min_workers__lte=models.F("workers")),
                name="job_min_workers_within_workers",
            ),
            models.UniqueConstraint(fields=["adopts"], condition=~models.Q(adopts=""), name="job_adopts_once"),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="job_newest"),
            models.Index(fields=["team", "-created_at", "-id"], name="job_team_newest"),
            models.Index(fields=["team", "state", "-created_at", "-id"], name="job_team_state_newest"),
            models.Index(fields=["owner", "-created_at", "-id"], name="job_owner_newest"),
            # What the engine and the driver read: the few jobs that are not over.
            models.Index(
                fields=["state", "queue"],
                condition=models.Q(state__in=["queued", "admitted", "starting", "running", "stopping"]),
                name="job_live",
            ),
            GinIndex(fields=["labels"], name="job_labels"),
        ]

    def __str__(self) -> str:
        return self.full_name

    @property
    def full_name(self) -> str:
        """The name people read: the n-th run of a name is name-n."""
        return f"{self.name}-{self.number}"

    def exclusions_at(self, now: datetime) -> list[dict[str, Any]]:
        """The exclusions that stand now."""
        return [each for each in self.exclusions if each["until"] > now.isoformat()]

    def excluded_node_ids(self, now: datetime) -> list[int]:
        """The nodes that it must not use now."""
        return [each["node"] for each in self.exclusions_at(now)]

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in self.FINAL

    @property
    def is_schedule(self) -> bool:
        """Whether it makes runs and is none itself."""
        return self.workload == "cronjob"

    @property
    def shown_state(self) -> str:
        """The state as people see it: a schedule waits for its times, and does not run."""
        if self.is_schedule and self.state == self.State.RUNNING:
            return "paused" if self.is_paused else "scheduled"
        return self.state

    @property
    def is_service(self) -> bool:
        """Whether it serves until it is stopped."""
        return self.kind == self.Kind.INFERENCE
