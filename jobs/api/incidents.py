"""Incidents over REST."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from clusters.models import NodeFault
from jobs.models import Incident
from jobs.selectors.incidents import NEWEST_FIRST, document_of, incidents, narrowed
from portal.core.rest.request import ApiRequest


class IncidentOut(serializers.Serializer[Any]):
    """A run that was stopped since its node failed; `run` is null for those who may not see it.

    `lost_cents` is null where a flavor of the run had no price.
    """

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    node = serializers.CharField()
    kind = serializers.ChoiceField(NodeFault.Kind.choices)
    message = serializers.CharField()
    team = serializers.CharField()
    run = serializers.CharField(allow_null=True)
    run_name = serializers.CharField(allow_null=True)
    attempt = serializers.IntegerField()
    gpus = serializers.IntegerField()
    lost_gpu_minutes = serializers.FloatField()
    lost_cents = serializers.IntegerField(allow_null=True)
    currency = serializers.CharField()
    lost_since = serializers.DateTimeField(allow_null=True)
    from_checkpoint = serializers.BooleanField()
    detected_at = serializers.DateTimeField()
    opened_at = serializers.DateTimeField()
    fault_over_at = serializers.DateTimeField(allow_null=True)
    stopped_at = serializers.DateTimeField(allow_null=True)
    running_again_at = serializers.DateTimeField(allow_null=True)


class IncidentViewSet(GenericViewSet[Incident]):
    """What faults of nodes did to runs."""

    request: ApiRequest
    serializer_class = IncidentOut
    keyset_order = NEWEST_FIRST

    def get_queryset(self) -> QuerySet[Incident]:
        """Return all, of one cluster or node when it is named."""
        params = self.request.query_params
        rows = incidents(self.request.user)
        return narrowed(rows, cluster=params.get("cluster", ""), node=params.get("node", ""))

    @extend_schema(
        parameters=[OpenApiParameter(name) for name in ("cluster", "node")], responses=IncidentOut(many=True)
    )
    def list(self, _request: ApiRequest) -> Response:
        """List incidents, newest first."""
        rows = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(IncidentOut([document_of(row) for row in rows or []], many=True).data)
