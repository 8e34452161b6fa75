"""What there is and what could start now, in one answer."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from clusters.api import CapacityOut
from clusters.selectors.capacity import FlavorCapacity, free_by_cluster, sum_by_flavor
from clusters.selectors.clusters import enabled_clusters, state_of
from clusters.selectors.gangs import FlavorNow, free_now
from portal.core import clock
from portal.core.rest.request import ApiRequest


class GangOut(serializers.Serializer[FlavorNow]):
    """The largest gang of one flavor that one cluster has room for now."""

    flavor = serializers.CharField(source="name")
    workers = serializers.IntegerField()
    gpus_per_worker = serializers.IntegerField(source="per_worker")
    gpus = serializers.IntegerField(source="gang")


class ClusterCapacityOut(serializers.Serializer[dict[str, Any]]):
    """One cluster that takes part: "healthy" or "stale", when it was heard of, and its GPUs."""

    name = serializers.CharField()
    state = serializers.CharField()
    heard_at = serializers.DateTimeField(allow_null=True)
    flavors = CapacityOut(many=True)


class AllCapacityOut(serializers.Serializer[dict[str, Any]]):
    """Sums by flavor over all clusters that take part, each cluster alone, and the largest gangs now."""

    flavors = CapacityOut(many=True)
    largest_gangs = GangOut(many=True)
    clusters = ClusterCapacityOut(many=True)


class CapacityViewSet(viewsets.ViewSet):
    """How many GPUs there are, and what could start now."""

    @extend_schema(responses=AllCapacityOut)
    def list(self, _request: ApiRequest) -> Response:
        """Return the capacity of all clusters that take part. Not a reservation."""
        now = clock.now()
        by_cluster = free_by_cluster(now)
        clusters = [
            {
                "name": cluster.name,
                "state": state_of(cluster, now),
                "heard_at": cluster.heard_at,
                "flavors": by_cluster.get(cluster.pk, ()),
            }
            for cluster in enabled_clusters()
        ]
        everywhere: Sequence[FlavorCapacity] = sum_by_flavor(by_cluster.values())
        answer = {"flavors": everywhere, "largest_gangs": free_now(now).flavors, "clusters": clusters}
        return Response(AllCapacityOut(answer).data)


router_entries: list[tuple[str, type[viewsets.ViewSetMixin], str]] = [("capacity", CapacityViewSet, "capacity")]
