"""What an attempt holds, rank by rank, from the decision until proof that the rank is gone."""

from django.db import models

from clusters.models import Node, ResourceFlavor
from jobs.models.attempt import Attempt


class Allocation(models.Model):
    """One rank's share of one node. `released_at` is set once, after proof, in one transaction with the counters."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="allocations")
    rank = models.PositiveIntegerField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="allocations")
    # The uid that the node had when the place was decided: a node made anew under its name is another node.
    node_uid = models.CharField(max_length=64)
    flavor = models.ForeignKey(ResourceFlavor, on_delete=models.PROTECT, related_name="+")
    queue_id = models.BigIntegerField()
    gpus = models.PositiveIntegerField()
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    # The pod that this rank was given (replicas of a service have no index of their own).
    pod_uid = models.CharField(max_length=64, blank=True)
    made_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "rank"],
                condition=models.Q(released_at=None),
                name="allocation_rank_held_once",
            ),
            models.UniqueConstraint(
                fields=["attempt", "pod_uid"],
                condition=models.Q(released_at=None) & ~models.Q(pod_uid=""),
                name="allocation_pod_once",
            ),
        ]
        indexes = [
            models.Index(fields=["node"], condition=models.Q(released_at=None), name="allocation_held_by_node"),
            models.Index(fields=["queue_id"], condition=models.Q(released_at=None), name="allocation_held_by_queue"),
        ]

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.node_id}"
