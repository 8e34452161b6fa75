"""Queues, quotas and priorities over REST."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.response import Response

from portal.core.errors import InvalidInputError
from portal.core.rest.request import ApiRequest
from portal.identity.actors import actor_of
from portal.identity.models import Team
from portal.identity.selectors import visible_teams
from quotas.models import PriorityClass, Queue, Quota, Space
from quotas.permissions import can_edit_policy, visible_queues, visible_quotas
from quotas.policy.document import QuotaTreeRows, cohort_id, queue_id
from quotas.policy.limits import MAX_GPUS, MAX_PRIORITY
from quotas.selectors.pages import flavor_choices, queue_cells
from quotas.selectors.spaces import visible_spaces
from quotas.selectors.tree import quota_tree
from quotas.services import priority
from quotas.services.priority import PriorityValues
from quotas.services.tree import set_quota
from quotas.sync.wishes import ask_to_apply

_VALUES = ("name", "value", "description", "is_open", "is_default")


class ReadOrAdminister(BasePermission):
    """Everybody signed in may read; only administrators of the platform write."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return whether the person may do this at all."""
        return request.method in ("GET", "HEAD", "OPTIONS") or can_edit_policy(request.user)


class WithTree:
    """Reads the tree once per answer, however many rows are drawn."""

    request: ApiRequest

    def get_serializer_context(self) -> dict[str, Any]:
        """Hand the tree and the flavors to the serializer."""
        context: dict[str, Any] = super().get_serializer_context()  # type: ignore[misc]  # of the viewset beside it
        return {**context, "tree": quota_tree(), "flavors": flavor_choices()}


class ShareOut(serializers.Serializer[Any]):
    """What a queue may hold of one flavor, in whole GPUs; `nominal` is null where a quota was taken away."""

    flavor = serializers.CharField(source="flavor.name")
    nominal = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    left = serializers.IntegerField()


class QueueOut(serializers.ModelSerializer[Queue]):
    """A queue: whose it is, where it stands in the tree, what it may hold."""

    team = serializers.CharField(source="team.slug")
    cohorts = serializers.SerializerMethodField()
    quota = serializers.SerializerMethodField()

    class Meta:
        model = Queue
        fields = ["id", "name", "team", "cohorts", "is_default", "is_paused", "quota", "version"]
        read_only_fields = fields

    def get_cohorts(self, queue: Queue) -> list[str]:
        """Return the cohorts above the queue, nearest first."""
        tree: QuotaTreeRows = self.context["tree"]
        return [node.name for node in tree.path(queue_id(queue.pk))[1:]]

    @extend_schema_field(ShareOut(many=True))
    def get_quota(self, queue: Queue) -> Any:
        """Return the share of each flavor."""
        tree: QuotaTreeRows = self.context["tree"]
        node = tree.by_id[queue_id(queue.pk)]
        return ShareOut(queue_cells(tree, node, self.context["flavors"]), many=True).data


class QueueViewSet(WithTree, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Queue]):
    """The queues of the organizations that a person belongs to."""

    serializer_class = QueueOut
    keyset_order = ("name", "id")
    lookup_value_regex = "[0-9]{1,18}"
    request: ApiRequest

    def get_queryset(self) -> QuerySet[Queue]:
        """Return what the person may see."""
        return visible_queues(self.request.user)


class QuotaOut(serializers.ModelSerializer[Quota]):
    """How many whole GPUs of a flavor a cohort or queue may hold, and holds."""

    owner = serializers.CharField(source="owner.name")
    owner_kind = serializers.SerializerMethodField()
    flavor = serializers.CharField(source="flavor.name")
    used = serializers.SerializerMethodField()

    class Meta:
        model = Quota
        fields = ["id", "owner", "owner_kind", "flavor", "nominal", "used", "version"]
        read_only_fields = fields

    def get_owner_kind(self, quota: Quota) -> str:
        """Return "queue" or "cohort"."""
        return "cohort" if quota.queue_id is None else "queue"

    def get_used(self, quota: Quota) -> int:
        """Return the whole GPUs in use."""
        tree: QuotaTreeRows = self.context["tree"]
        node = cohort_id(quota.cohort_id or 0) if quota.queue_id is None else queue_id(quota.queue_id)
        return tree.used.get((node, quota.flavor_id), 0)


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": MAX_GPUS})
class WholeGpusField(serializers.Field[Any, Any, Any, Any]):
    """Passes on what was sent: the service takes whole numbers only, and says so in one place."""

    def to_internal_value(self, data: Any) -> Any:
        """Return it as it came."""
        return data


class QuotaIn(serializers.Serializer[Quota]):
    """A new amount, and the version of the quota that it replaces."""

    nominal = WholeGpusField()
    version = serializers.IntegerField(min_value=0, max_value=2**31 - 1)


class QuotaEditOut(QuotaOut):
    """The stored quota, and what the administrator should know about it."""

    warnings = serializers.SerializerMethodField()

    class Meta(QuotaOut.Meta):
        fields = [*QuotaOut.Meta.fields, "warnings"]
        read_only_fields = fields

    def get_warnings(self, _quota: Quota) -> list[str]:
        """Return sentences, for example that more is in use than the new amount."""
        return list(self.context.get("warnings", ()))


class QuotaViewSet(WithTree, mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Quota]):
    """Quotas in the organizations that a person belongs to; administrators change the amount."""

    serializer_class = QuotaOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("id",)
    lookup_value_regex = "[0-9]{1,18}"
    request: ApiRequest

    def get_queryset(self) -> QuerySet[Quota]:
        """Return what the person may see."""
        return visible_quotas(self.request.user)

    @extend_schema(request=QuotaIn, responses=QuotaEditOut)
    def partial_update(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Set the amount. 409 `stale` with both versions, 422 `above_parent` with both numbers."""
        row = self.get_object()
        given = QuotaIn(data=request.data)
        given.is_valid(raise_exception=True)
        edit = set_quota(
            actor=actor_of(request),
            owner=row.owner,
            flavor=row.flavor,
            nominal=given.validated_data["nominal"],
            expected_version=given.validated_data["version"],
        )
        context = {**self.get_serializer_context(), "warnings": edit.warnings}
        return Response(QuotaEditOut(edit.quota, context=context).data)


class PriorityOut(serializers.ModelSerializer[PriorityClass]):
    """A rung of the ladder. `teams` lists those of the person's teams that may use it (of all, for administrators)."""

    teams = serializers.SerializerMethodField()

    class Meta:
        model = PriorityClass
        fields = ["name", "value", "description", "is_open", "is_default", "teams", "version"]
        read_only_fields = fields

    def get_teams(self, rung: PriorityClass) -> list[str]:
        """Return the slugs of the teams that may use it."""
        teams: dict[int, str] = self.context["teams"]
        granted = {grant.team_id for grant in rung.grants.all()}
        return sorted(slug for pk, slug in teams.items() if rung.is_open or pk in granted)


class PriorityIn(serializers.Serializer[PriorityClass]):
    """What an administrator writes about a rung; `teams` are those that hold a grant."""

    name = serializers.CharField(max_length=60)
    value = serializers.IntegerField(min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY)
    description = serializers.CharField(max_length=200, allow_blank=True, default="")
    is_open = serializers.BooleanField(default=False)
    is_default = serializers.BooleanField(default=False)
    teams = serializers.SlugRelatedField(slug_field="slug", queryset=Team.objects.all(), many=True, required=False)


class PriorityPatch(PriorityIn):
    """Some of it, and the version of the rung that it changes."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


_VERSION = OpenApiParameter("version", int, required=True, description="The version that was seen.")


class PriorityViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[PriorityClass]):
    """The priority ladder; administrators change it."""

    queryset = PriorityClass.objects.prefetch_related("grants")
    serializer_class = PriorityOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("-value", "id")
    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]{1,60}"
    request: ApiRequest

    def get_serializer_context(self) -> dict[str, Any]:
        """Hand the teams that the person may see to the serializer."""
        teams = dict(visible_teams(self.request.user).values_list("pk", "slug"))
        return {**super().get_serializer_context(), "teams": teams}

    @extend_schema(request=PriorityIn, responses={201: PriorityOut})
    def create(self, request: ApiRequest) -> Response:
        """Add a rung, with grants if `teams` are named."""
        given = PriorityIn(data=request.data)
        given.is_valid(raise_exception=True)
        values = {name: given.validated_data[name] for name in _VALUES}
        rung = priority.create_priority(
            actor=actor_of(request), values=PriorityValues(**values), teams=given.validated_data.get("teams")
        )
        return self._answer(rung, status.HTTP_201_CREATED)

    @extend_schema(request=PriorityPatch, responses=PriorityOut)
    def partial_update(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Change the fields that are sent. 409 `stale` with both versions."""
        rung = self.get_object()
        given = PriorityPatch(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        sent = given.validated_data
        values = {name: sent.get(name, getattr(rung, name)) for name in _VALUES}
        priority.edit_priority(
            actor=actor_of(request),
            rung=rung,
            values=PriorityValues(**values),
            expected_version=_seen(sent.get("version")),
            teams=sent.get("teams"),
        )
        return self._answer(rung)

    @extend_schema(parameters=[_VERSION], responses={204: None})
    def destroy(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Remove a rung that is neither the default nor named by a job."""
        rung = self.get_object()
        given = PriorityPatch(data={"version": request.query_params.get("version")}, partial=True)
        given.is_valid(raise_exception=True)
        version = _seen(given.validated_data.get("version"))
        priority.delete_priority(actor=actor_of(request), rung=rung, expected_version=version)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _answer(self, rung: PriorityClass, code: int = status.HTTP_200_OK) -> Response:
        stored = self.get_queryset().get(pk=rung.pk)
        return Response(PriorityOut(stored, context=self.get_serializer_context()).data, status=code)


def _seen(version: int | None) -> int:
    """Return the version; without one an edit cannot tell what it would overwrite."""
    if version is None:
        raise InvalidInputError({"version": [_("Send the version that you saw.")]})
    return version


class SpaceOut(serializers.ModelSerializer[Space]):
    """A team's space on a cluster as it was last seen; `team` is null for what the cluster has for all teams.

    Each object has `state`: in_step, missing, outdated (changed here), altered (changed there) or unknown; `fields`
    lists what differs as [path, wanted, found].
    """

    cluster = serializers.CharField(source="cluster.name")
    team = serializers.CharField(source="team.slug", default=None)
    namespace = serializers.CharField(source="team.namespace", default=None)
    objects = serializers.JSONField(source="objects_seen")

    class Meta:
        model = Space
        fields = ["id", "cluster", "team", "namespace", "state", "since", "asked_at", "objects"]
        read_only_fields = fields


class SpaceViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Space]):
    """The spaces of the person's teams; administrators have them applied."""

    serializer_class = SpaceOut
    permission_classes = [IsAuthenticated, ReadOrAdminister]
    keyset_order = ("id",)
    lookup_value_regex = "[0-9]{1,18}"
    request: ApiRequest

    def get_queryset(self) -> QuerySet[Space]:
        """Return what the person may see."""
        return visible_spaces(self.request.user).order_by("id")

    @extend_schema(request=None, responses={202: SpaceOut})
    @action(detail=True, methods=["post"])
    def apply(self, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        """Have it applied anew, whoever changed it; the worker does it soon. 409 `cluster_disabled`."""
        space = self.get_object()
        asked = ask_to_apply(actor=actor_of(request), cluster=space.cluster, team=space.team)
        return Response(SpaceOut(asked).data, status=status.HTTP_202_ACCEPTED)


router_entries: list[tuple[str, type[viewsets.ViewSetMixin], str]] = [
    ("queues", QueueViewSet, "queue"),
    ("quotas", QuotaViewSet, "quota"),
    ("priority-classes", PriorityViewSet, "priority-class"),
    ("spaces", SpaceViewSet, "space"),
]
