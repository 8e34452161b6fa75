"""What the GPUs measured: a short raw window, and minutes by job and by node.

Nothing here has a foreign key: rows come by COPY and go by age. Null means not measured, never zero.
"""

from datetime import timedelta

from django.db import models

# How long single samples are kept; minutes are kept beyond.
RAW_WINDOW = timedelta(minutes=15)


class GpuSample(models.Model):
    """One GPU at one moment. Utilisation in percent, memory in MiB, power in watts, temperature in degrees Celsius."""

    at = models.DateTimeField()
    cluster_id = models.BigIntegerField()
    node_id = models.BigIntegerField()
    gpu = models.CharField(max_length=64)
    index = models.PositiveSmallIntegerField()
    run = models.CharField(max_length=63, blank=True)
    rank = models.IntegerField(null=True)
    utilisation = models.FloatField(null=True)
    memory_used = models.FloatField(null=True)
    memory_total = models.FloatField(null=True)
    power = models.FloatField(null=True)
    temperature = models.FloatField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["run", "at"], name="gpu_sample_run", condition=~models.Q(run="")),
            models.Index(fields=["node_id", "at"], name="gpu_sample_node"),
            models.Index(fields=["at"], name="gpu_sample_at"),
        ]

    def __str__(self) -> str:
        return f"{self.gpu} {self.at}"


class JobMinute(models.Model):
    """One minute of one rank of one job: means over its GPUs and the number of samples behind them."""

    minute = models.DateTimeField()
    run = models.CharField(max_length=63)
    rank = models.IntegerField()
    samples = models.PositiveIntegerField()
    utilisation = models.FloatField(null=True)
    memory_used = models.FloatField(null=True)
    memory_total = models.FloatField(null=True)
    power = models.FloatField(null=True)
    temperature = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "rank", "minute"], name="job_minute_once")]
        indexes = [models.Index(fields=["minute"], name="job_minute_at")]

    def __str__(self) -> str:
        return f"{self.run} {self.rank} {self.minute}"


class NodeMinute(models.Model):
    """One minute of one node: means over all its GPUs, and how many of them were held by a pod."""

    minute = models.DateTimeField()
    cluster_id = models.BigIntegerField()
    node_id = models.BigIntegerField()
    samples = models.PositiveIntegerField()
    gpus = models.PositiveSmallIntegerField()
    gpus_held = models.PositiveSmallIntegerField(default=0)
    utilisation = models.FloatField(null=True)
    utilisation_held = models.FloatField(null=True)
    power = models.FloatField(null=True)
    temperature = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node_id", "minute"], name="node_minute_once")]
        indexes = [models.Index(fields=["cluster_id", "minute"], name="node_minute_cluster")]

    def __str__(self) -> str:
        return f"{self.node_id} {self.minute}"
