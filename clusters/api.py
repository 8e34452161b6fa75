"""Clusters, nodes and flavors over REST."""

from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.response import Response

from clusters.models import (
    Cluster,
    Node,
    NodeAccelerator,
    NodeFault,
    NodeMaintenance,
    ResourceFlavor,
    Severity,
    TopologyLevel,
)
from clusters.permissions import can_administer_supply
from clusters.probe.card import Line, card_of
from clusters.selectors.capacity import FlavorCapacity, free_by_cluster
from clusters.selectors.clusters import state_of
from clusters.selectors.effects import Effect
from clusters.selectors.nodes import all_nodes
from clusters.services.findings import ask_for_checks
from clusters.services.flavors import create_flavor, delete_flavor, update_flavor
from clusters.services.maintenance import ask_for_maintenance, end_maintenance
from clusters.services.quarantine import quarantine_node, release_node
from clusters.services.registration import Level, register_cluster, set_levels, update_cluster
from portal.core import clock
from portal.core.rest.request import ApiRequest
from portal.identity.actors import actor_of

# Longer than any right answer: what is wrong with it, the services say in words.
_MAX_TYPED = 400
_MAX_KUBECONFIG = 200_000


class ReadOrAdminister(BasePermission):
    """Everybody signed in may read; only administrators of the platform write."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return whether the person may do this at all."""
        return request.method in ("GET", "HEAD", "OPTIONS") or can_administer_supply(request.user)


class CapacityOut(serializers.Serializer[FlavorCapacity]):
    """Whole GPUs of one flavor: built in, working, working on open nodes, held here, used by others, free now."""

    flavor = serializers.CharField(source="name")
    title = serializers.CharField()
    nodes = serializers.IntegerField()
    capacity = serializers.IntegerField()
    allocatable = serializers.IntegerField()
    usable = serializers.IntegerField()
    held = serializers.IntegerField()
    foreign = serializers.IntegerField()
    free = serializers.IntegerField()


class LevelOut(serializers.ModelSerializer[TopologyLevel]):
    """One topology level."""

    class Meta:
        model = TopologyLevel
        fields = ["name", "label_key"]
        read_only_fields = fields


class ClusterOut(serializers.ModelSerializer[Cluster]):
    """A cluster: how it stands, its levels (widest first), and its GPUs by flavor."""

    state = serializers.SerializerMethodField()
    nodes = serializers.IntegerField(source="all_nodes")
    nodes_ready = serializers.IntegerField(source="ready_nodes")
    levels = LevelOut(many=True)
    gpus = serializers.SerializerMethodField()

    class Meta:
        model = Cluster
        fields = [
            *("name", "state", "is_enabled", "is_simulated", "has_fake_nodes", "kubernetes_version"),
            *("heard_at", "synced_at", "last_error", "nodes", "nodes_ready", "levels", "gpus", "version"),
        ]
        read_only_fields = fields

    def get_state(self, cluster: Cluster) -> str:
        """Return "healthy", "stale" or "disabled"."""
        return state_of(cluster, clock.now())

    @extend_schema_field(CapacityOut(many=True))
    def get_gpus(self, cluster: Cluster) -> Any:
        """Return what there is of each flavor."""
        return CapacityOut(self.context["capacities"].get(cluster.pk, []), many=True).data


class LevelIn(serializers.Serializer[TopologyLevel]):
    """One topology level."""

    name = serializers.CharField(max_length=_MAX_TYPED)
    label_key = serializers.CharField(max_length=_MAX_TYPED)


class LevelsIn(serializers.Serializer[Cluster]):
    """All levels, widest first, and the version of the cluster that was seen."""

    levels = LevelIn(many=True)
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class ClusterIn(serializers.Serializer[Cluster]):
    """A new cluster. Of the kubeconfig only server, certificate authority and token are kept; none is shown again."""

    name = serializers.CharField(max_length=_MAX_TYPED)
    kubeconfig = serializers.CharField(max_length=_MAX_KUBECONFIG, trim_whitespace=False, write_only=True)
    exporter_url = serializers.CharField(max_length=_MAX_TYPED, allow_blank=True, default="")
    levels = LevelIn(many=True, default=list)


class ClusterPatch(serializers.Serializer[Cluster]):
    """What may change of a cluster, and the version that was seen."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    kubeconfig = serializers.CharField(
        max_length=_MAX_KUBECONFIG, trim_whitespace=False, write_only=True, required=False
    )
    exporter_url = serializers.CharField(max_length=_MAX_TYPED, allow_blank=True, required=False)
    is_enabled = serializers.BooleanField(required=False)


class CheckOut(serializers.Serializer[Line]):
    """One check of a cluster in words. Only administrators are told details, advice and what to apply."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(Severity.choices)
    title = serializers.CharField()
    sentence = serializers.CharField()
    since = serializers.DateTimeField()
    details = serializers.ListField(child=serializers.CharField())
    advice = serializers.CharField()
    yaml = serializers.CharField()


class ChecksOut(serializers.Serializer[Any]):
    """The checks of a cluster, the worst first; `probed_at`: when all were last made, `probe_asked_at`: asked for."""

    probed_at = serializers.DateTimeField(allow_null=True)
    probe_asked_at = serializers.DateTimeField(allow_null=True)
    checks = CheckOut(many=True)


class ClusterViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Cluster]):
    """The clusters; administrators register and change them."""

    serializer_class = ClusterOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("name", "id")
    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]{1,40}"
    request: ApiRequest

    def get_queryset(self) -> QuerySet[Cluster]:
        """Return all clusters with their levels and the numbers of their nodes."""
        here = Q(nodes__gone_at=None)
        return Cluster.objects.prefetch_related("levels").annotate(
            all_nodes=Count("nodes", filter=here), ready_nodes=Count("nodes", filter=here & Q(nodes__is_ready=True))
        )

    def get_serializer_context(self) -> dict[str, Any]:
        """Hand the capacities of all clusters to the serializer: one query however many rows are drawn."""
        return {**super().get_serializer_context(), "capacities": free_by_cluster(clock.now())}

    @extend_schema(request=ClusterIn, responses={201: ClusterOut})
    def create(self, request: ApiRequest) -> Response:
        """Register a cluster. 422 names each refused field of the kubeconfig."""
        given = ClusterIn(data=request.data)
        given.is_valid(raise_exception=True)
        values = {**given.validated_data, "levels": [Level(**each) for each in given.validated_data["levels"]]}
        return self._answer(register_cluster(actor=actor_of(request), **values), status.HTTP_201_CREATED)

    @extend_schema(request=ClusterPatch, responses=ClusterOut)
    def partial_update(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Change the fields that are sent. 409 `stale` with both versions."""
        cluster = self.get_object()
        given = ClusterPatch(data=request.data)
        given.is_valid(raise_exception=True)
        return self._answer(update_cluster(actor=actor_of(request), cluster=cluster, **given.validated_data))

    @extend_schema(request=LevelsIn, responses=ClusterOut)
    @action(detail=True, methods=["put"])
    def levels(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Replace the topology levels. 409 `stale` with both versions."""
        cluster = self.get_object()
        given = LevelsIn(data=request.data)
        given.is_valid(raise_exception=True)
        levels = [Level(**each) for each in given.validated_data["levels"]]
        version = given.validated_data["version"]
        return self._answer(set_levels(actor=actor_of(request), cluster=cluster, version=version, levels=levels))

    @extend_schema(methods=["GET"], responses=ChecksOut)
    @extend_schema(methods=["POST"], request=None, responses={202: ChecksOut})
    @action(detail=True, methods=["get", "post"])
    def probe(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Read what the checks found (members: problems alone), or ask for all of them anew.

        409 `cluster_disabled`: nobody watches it.
        """
        cluster = self.get_object()
        is_read = request.method == "GET"
        if not is_read:
            ask_for_checks(actor=actor_of(request), cluster=cluster)
            cluster.refresh_from_db(fields=["probe_asked_at"])
        told = {
            "probed_at": cluster.probed_at,
            "probe_asked_at": cluster.probe_asked_at,
            "checks": card_of(cluster.findings.all(), request.user),
        }
        return Response(ChecksOut(told).data, status=status.HTTP_200_OK if is_read else status.HTTP_202_ACCEPTED)

    def _answer(self, cluster: Cluster, code: int = status.HTTP_200_OK) -> Response:
        stored = self.get_queryset().get(pk=cluster.pk)
        return Response(ClusterOut(stored, context=self.get_serializer_context()).data, status=code)


class AcceleratorOut(serializers.ModelSerializer[NodeAccelerator]):
    """Whole GPUs of one flavor on one node."""

    flavor = serializers.CharField(source="flavor.name")

    class Meta:
        model = NodeAccelerator
        fields = ["flavor", "capacity", "allocatable", "held", "foreign"]
        read_only_fields = fields


class FaultOut(serializers.ModelSerializer[NodeFault]):
    """Something that went wrong with a node, from when it was seen until it was mended."""

    class Meta:
        model = NodeFault
        fields = ["id", "kind", "subject", "detail", "detected_at", "acts_at", "cleared_at"]
        read_only_fields = fields


class QuarantineIn(serializers.Serializer[Node]):
    """Why nothing new may run on a node."""

    reason = serializers.CharField(max_length=300)


class MaintenanceIn(serializers.Serializer[Node]):
    """When the node is emptied (null: at once), and why."""

    deadline_at = serializers.DateTimeField(allow_null=True, default=None)
    reason = serializers.CharField(max_length=300, allow_blank=True, default="")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse other fields: a deadline whose name is mistyped must not empty the node at once."""
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            errors = {name[:80]: [_("There is no such field.")] for name in unknown[:10]}
            raise serializers.ValidationError(errors, code="unknown_field")
        return attrs


class EffectOut(serializers.Serializer[Effect]):
    """One run on the node: what happens to it at the deadline. `run` is its team for those who may not see it."""

    run = serializers.CharField(source="label")
    gpus = serializers.IntegerField()
    what = serializers.CharField()
    lost_gpu_hours = serializers.FloatField(allow_null=True)


class MaintenanceOut(serializers.Serializer[Any]):
    """The maintenance of a node; `state` is null where there is none. `runs` are those that are still there."""

    state = serializers.ChoiceField(NodeMaintenance.State.choices, allow_null=True)
    deadline_at = serializers.DateTimeField(allow_null=True)
    drained_at = serializers.DateTimeField(allow_null=True)
    asked_by = serializers.CharField()
    reason = serializers.CharField()
    runs = EffectOut(many=True)


class NodeOut(serializers.ModelSerializer[Node]):
    """A node that is there. CPU in thousandths of a core, memory in MiB; `foreign_...` is what others use."""

    cluster = serializers.CharField(source="cluster.name")
    gpus = AcceleratorOut(source="accelerators", many=True)

    class Meta:
        model = Node
        fields = [
            *("id", "name", "cluster", "is_ready", "is_cordoned", "labels", "taints", "conditions", "address"),
            *("kubelet_version", "container_runtime", "cpu_milli", "memory_mib", "pods"),
            *("foreign_cpu_milli", "foreign_memory_mib", "foreign_pods", "gpus"),
            *("is_faulty", "quarantined_at", "quarantined_by", "quarantine_reason", "maintenance_at"),
        ]
        read_only_fields = fields


@extend_schema(parameters=[OpenApiParameter("cluster", str, description="Only nodes of the cluster of this name.")])
class NodeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Node]):
    """The nodes of all clusters; administrators quarantine them and take them for maintenance."""

    serializer_class = NodeOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("name", "id")
    lookup_value_regex = "[0-9]{1,18}"
    request: ApiRequest

    def get_queryset(self) -> QuerySet[Node]:
        """Return the nodes that are there, of one cluster when it is named."""
        cluster = self.request.query_params.get("cluster")
        if not cluster:
            return all_nodes()
        # The database takes no NUL, not even to look for one.
        return all_nodes().filter(cluster__name=cluster) if cluster.isprintable() else Node.objects.none()

    @extend_schema(responses=FaultOut(many=True))
    @action(detail=True, pagination_class=None)
    def faults(self, _request: ApiRequest, *_args: Any, **_kwargs: Any) -> Response:
        """Return the newest faults of the node, at most 100."""
        rows = NodeFault.objects.filter(node=self.get_object()).order_by("-detected_at", "-pk")
        return Response(FaultOut(rows[:100], many=True).data)

    @extend_schema(methods=["POST"], request=QuarantineIn, responses=NodeOut)
    @extend_schema(methods=["DELETE"], responses=NodeOut)
    @action(detail=True, methods=["post", "delete"])
    def quarantine(self, request: ApiRequest, *_args: Any, **_kwargs: Any) -> Response:
        """Place nothing new on the node, or let it work again. 409 `quarantined`, `not_quarantined`."""
        node = self.get_object()
        if request.method == "DELETE":
            release_node(actor=actor_of(request), node=node)
        else:
            given = QuarantineIn(data=request.data)
            given.is_valid(raise_exception=True)
            quarantine_node(actor=actor_of(request), node=node, **given.validated_data)
        return Response(NodeOut(self.get_object()).data)

    @extend_schema(methods=["GET", "DELETE"], responses=MaintenanceOut)
    @extend_schema(methods=["POST"], request=MaintenanceIn, responses=MaintenanceOut)
    @action(detail=True, methods=["get", "post", "delete"])
    def maintenance(self, request: ApiRequest, *_args: Any, **_kwargs: Any) -> Response:
        """Read the maintenance of the node, ask for it (again: move its deadline), cancel or end it.

        409 `in_maintenance`, `not_in_maintenance`.
        """
        node = self.get_object()
        if request.method == "DELETE":
            end_maintenance(actor=actor_of(request), node=node)
        if request.method == "POST":
            given = MaintenanceIn(data=request.data)
            given.is_valid(raise_exception=True)
            ask_for_maintenance(actor=actor_of(request), node=node, **given.validated_data)
        return Response(MaintenanceOut(self._maintenance(node)).data)

    def _maintenance(self, node: Node) -> dict[str, Any]:
        now = clock.now()
        live = NodeMaintenance.objects.filter(node=node, ended_at=None).first()
        deadline_at = live.deadline_at if live else now
        return {
            "state": live.state(now) if live else None,
            "deadline_at": live.deadline_at if live else None,
            "drained_at": live.drained_at if live else None,
            "asked_by": live.asked_by if live else "",
            "reason": live.reason if live else "",
            "runs": import_string(settings.MUSTER_MAINTENANCE_EFFECTS)(node, self.request.user, deadline_at, now),
        }


class FlavorOut(serializers.ModelSerializer[ResourceFlavor]):
    """A class of interchangeable nodes; its price is that of one GPU for one hour, 0 where it has none."""

    class Meta:
        model = ResourceFlavor
        fields = [
            *("name", "title", "resource_name", "label_key", "label_value"),
            *("memory_mib", "link", "rank", "price_cents"),
        ]
        read_only_fields = fields


class FlavorIn(serializers.Serializer[ResourceFlavor]):
    """What an administrator writes about a flavor."""

    name = serializers.CharField(max_length=_MAX_TYPED)
    title = serializers.CharField(max_length=_MAX_TYPED)
    resource_name = serializers.CharField(max_length=_MAX_TYPED, required=False)
    label_key = serializers.CharField(max_length=_MAX_TYPED, required=False)
    label_value = serializers.CharField(max_length=_MAX_TYPED)
    memory_mib = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    link = serializers.CharField(max_length=_MAX_TYPED, allow_blank=True, required=False)
    rank = serializers.IntegerField(min_value=0, max_value=32_767, required=False)
    price_cents = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False)


class FlavorViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ResourceFlavor]):
    """The flavors, in the order in which runs that name none try them; administrators define them."""

    queryset = ResourceFlavor.objects.all()
    serializer_class = FlavorOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("rank", "name", "id")
    lookup_field = "name"
    lookup_value_regex = r"[^/\x00]{1,40}"
    request: ApiRequest

    @extend_schema(request=FlavorIn, responses={201: FlavorOut})
    def create(self, request: ApiRequest) -> Response:
        """Define a flavor."""
        given = FlavorIn(data=request.data)
        given.is_valid(raise_exception=True)
        flavor = create_flavor(actor=actor_of(request), values=given.validated_data)
        return Response(FlavorOut(flavor).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=FlavorIn, responses=FlavorOut)
    def partial_update(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Change the fields that are sent."""
        flavor = self.get_object()
        given = FlavorIn(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        return Response(
            FlavorOut(update_flavor(actor=actor_of(request), flavor=flavor, values=given.validated_data)).data
        )

    @extend_schema(responses={204: None})
    def destroy(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Remove a flavor that no node has and no quota names. 409 `flavor_in_use`."""
        delete_flavor(actor=actor_of(request), flavor=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


router_entries: list[tuple[str, type[viewsets.ViewSetMixin], str]] = [
    ("clusters", ClusterViewSet, "clusters"),
    ("nodes", NodeViewSet, "nodes"),
    ("flavors", FlavorViewSet, "flavors"),
]
