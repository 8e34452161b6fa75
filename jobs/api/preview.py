"""REST of what would happen: the verdict on a document, and the documents to start from."""

from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from jobs.api.bodies import asked_of
from jobs.api.parsers import TextYamlParser, YamlParser
from jobs.api.serializers import Out, ReasonOut, WarningOut
from jobs.engine.verdict import NEVER, STARTS, WAITS, verdict
from jobs.jobspec.lesson import TEMPLATES, Template, by_name
from portal.core.rest.parsers import StrictJSONParser
from portal.core.rest.request import ApiRequest

SPEC_IN = {"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR}
FROM_QUERY = [OpenApiParameter(name) for name in ("team", "queue", "priority")]


class QuotaAfterOut(Out):
    """The queue's use of one flavor with this job in it; `left` is negative when it does not suffice."""

    queue = serializers.CharField()
    flavor = serializers.CharField()
    used = serializers.IntegerField()
    nominal = serializers.IntegerField(allow_null=True)
    left = serializers.IntegerField(allow_null=True)


class VerdictOut(Out):
    """What would happen now, as of the snapshot after `cycle`. Not a reservation."""

    cycle = serializers.IntegerField()
    outcome = serializers.ChoiceField(choices=[STARTS, WAITS, NEVER])
    workers = serializers.IntegerField()
    gpus = serializers.IntegerField()
    cluster = serializers.CharField()
    level = serializers.CharField()
    slowest_link = serializers.CharField()
    flavor = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    reason = ReasonOut(allow_null=True)
    position = serializers.IntegerField(allow_null=True)
    gpus_ahead = serializers.IntegerField(allow_null=True)
    ahead = serializers.ListField(child=serializers.CharField())
    quota = QuotaAfterOut(allow_null=True)
    warnings = WarningOut(many=True)
    objects = serializers.ListField(child=serializers.DictField())
    next_times = serializers.ListField(child=serializers.CharField(), source="times")


class TemplateOut(Out):
    """A document to start from."""

    name = serializers.CharField()
    title = serializers.SerializerMethodField()
    kind = serializers.CharField()
    description = serializers.SerializerMethodField()
    document = serializers.DictField()

    def get_title(self, template: Template) -> str:
        """Return the title in the reader's language."""
        return _(template.title)

    def get_description(self, template: Template) -> str:
        """Return the description in the reader's language."""
        return _(template.description)


class PreviewViewSet(ViewSet):
    """Asks the scheduler about a document without submitting it."""

    request: ApiRequest
    parser_classes = (StrictJSONParser, YamlParser, TextYamlParser)

    @extend_schema(parameters=FROM_QUERY, request=SPEC_IN, responses=VerdictOut)
    def create(self, request: ApiRequest) -> Response:
        """Answer what would happen to a JobSpec (JSON, YAML, or a Kubernetes object) if it were submitted now."""
        return Response(VerdictOut(verdict(asked_of(request, request.data))).data)


class TemplateViewSet(ViewSet):
    """The templates of the forms, as documents."""

    lookup_field = "name"
    lookup_value_regex = "[a-z0-9-]+"

    @extend_schema(responses=TemplateOut(many=True))
    def list(self, request: ApiRequest) -> Response:
        """List the templates."""
        return Response(TemplateOut(TEMPLATES, many=True).data)

    @extend_schema(responses=TemplateOut)
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Show one template."""
        template: Any = by_name(name)
        if template is None:
            raise Http404
        return Response(TemplateOut(template).data)
