"""REST of jobs."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from jobs.api.bodies import asked_of
from jobs.api.parsers import TextYamlParser, YamlParser, YamlText
from jobs.api.serializers import EventOut, JobOut, MetricsOut, PauseIn, ScaleIn
from jobs.models import Job
from jobs.permissions import can_control
from jobs.selectors.charts import charts_of
from jobs.selectors.documents import job_document, job_documents
from jobs.selectors.events import events_of
from jobs.selectors.filters import filtered
from jobs.selectors.jobs import jobs_visible_to
from jobs.services import control, intake, schedules, submit
from portal.core.errors import Fault, InvalidInputError, NotAllowedError
from portal.core.rest.idempotency import Answer, digest_of, run_once
from portal.core.rest.parsers import StrictJSONParser
from portal.core.rest.request import ApiRequest
from portal.identity.actors import actor_of

MAX_BATCH = 100
FILTERS = [
    OpenApiParameter(name) for name in ("state", "kind", "team", "queue", "owner", "flavor", "days", "label", "q")
]
FROM_QUERY = [OpenApiParameter(name) for name in ("team", "queue", "priority")]
SPEC_IN = {"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR}


class JobViewSet(GenericViewSet[Job]):
    """Submit jobs, look at them, stop and scale them."""

    request: ApiRequest
    serializer_class = JobOut
    parser_classes = (StrictJSONParser, YamlParser, TextYamlParser)
    lookup_field = "uid"
    lookup_value_regex = "[a-z0-9]{1,12}"

    def get_queryset(self) -> Any:
        """Only what the person may see exists."""
        return jobs_visible_to(self.request.user)

    @extend_schema(parameters=FILTERS, responses=JobOut(many=True))
    def list(self, request: ApiRequest) -> Response:
        """List jobs, newest first."""
        rows = self.paginate_queryset(filtered(self.get_queryset(), request.query_params))
        return self.get_paginated_response(job_documents(rows or []))

    @extend_schema(responses=JobOut)
    def retrieve(self, request: ApiRequest, uid: str) -> Response:
        """Show one job."""
        return Response(job_document(self._job(uid)))

    @extend_schema(parameters=FROM_QUERY, request=SPEC_IN, responses={201: JobOut})
    def create(self, request: ApiRequest) -> Response:
        """Submit a job: a JobSpec in JSON or YAML, or a Kubernetes Job, CronJob or Deployment as it is.

        What it names and we do not know is a 422, each error with its field and a code of its own: `unknown_team`,
        `unknown_queue`, `unknown_priority`, `unknown_flavor`, `unknown_cluster`, `unknown_parent`, and so on.
        """
        return self._once(lambda: self._submit(request.data))

    @extend_schema(
        request={"application/json": {"type": "array", "items": {"type": "object"}, "maxItems": MAX_BATCH}},
        responses={201: JobOut(many=True)},
    )
    @action(detail=False, methods=["post"], parser_classes=[StrictJSONParser])
    def batch(self, request: ApiRequest) -> Response:
        """Submit up to 100 JobSpecs, all or none. The fields of an error begin with the item, as in `[1].workers`."""
        return self._once(lambda: self._submit_all(request.data))

    @extend_schema(request=None, responses=JobOut)
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, uid: str) -> Response:
        """Stop a job. GPUs are free once its pods are proven gone."""
        job = self._controlled(uid)
        control.cancel_job(actor=actor_of(request), job=job)
        return Response(job_document(self._job(uid)))

    @extend_schema(request=ScaleIn, responses=JobOut)
    @action(detail=True, methods=["post"], parser_classes=[StrictJSONParser])
    def scale(self, request: ApiRequest, uid: str) -> Response:
        """Set the replicas of a service. One that is over, or that is being cancelled, is a 409."""
        job = self._controlled(uid)
        replicas = intake.read_replicas(request.data)
        control.scale_service(actor=actor_of(request), job=job, replicas=replicas)
        return Response(job_document(self._job(uid)))

    @extend_schema(request=PauseIn, responses=JobOut)
    @action(detail=True, methods=["post"], parser_classes=[StrictJSONParser])
    def pause(self, request: ApiRequest, uid: str) -> Response:
        """Let a schedule make no runs for now, or let it make them again. Runs that were made go on."""
        job = self._controlled(uid)
        is_paused = intake.read_pause(request.data)
        schedules.pause_schedule(actor=actor_of(request), job=job, is_paused=is_paused)
        return Response(job_document(self._job(uid)))

    @extend_schema(responses=EventOut(many=True))
    @action(detail=True, pagination_class=None)
    def events(self, request: ApiRequest, uid: str) -> Response:
        """Show what happened to a job, newest first."""
        return Response(events_of(self._job(uid)))

    @extend_schema(parameters=[OpenApiParameter("window")], responses=MetricsOut)
    @action(detail=True, pagination_class=None)
    def metrics(self, request: ApiRequest, uid: str) -> Response:
        """Show the figures of a job's charts: data and layout for Plotly."""
        charts = charts_of(self._job(uid), request.query_params.get("window", "15m"))
        return Response(MetricsOut(charts).data)

    def _once(self, act: Callable[[], object]) -> Response:
        """Run a create; with an `Idempotency-Key` at most once, however often it is sent."""
        headers = self.request.headers
        if "Idempotency-Key" not in headers:
            return Response(act(), status=201)
        body: object = self.request.data
        text = body.text if isinstance(body, YamlText) else json.dumps(body, sort_keys=True)
        digest = digest_of(self.request.get_full_path().encode(), text.encode())
        answer = run_once(self.request.user.pk, headers["Idempotency-Key"], digest, lambda: Answer(201, act()))
        return Response(answer.body, status=answer.status)

    def _job(self, uid: str) -> Job:
        job: Job = get_object_or_404(self.get_queryset(), uid=uid)
        return job

    def _controlled(self, uid: str) -> Job:
        job = self._job(uid)
        if not can_control(self.request.user, self.request.roles.get(job.team_id), job):
            raise NotAllowedError
        return job

    def _submit(self, body: object) -> dict[str, object]:
        asked = asked_of(self.request, body)
        job = submit.submit_job(
            actor=actor_of(self.request), owner=self.request.user, request=asked, warnings=intake.warnings_of(asked)
        )
        return job_document(job)

    def _submit_all(self, body: object) -> Sequence[dict[str, object]]:
        if not isinstance(body, list) or not 1 <= len(body) <= MAX_BATCH:
            text = _("Send a list of 1 to %(most)d JobSpecs.") % {"most": MAX_BATCH}
            raise InvalidInputError.of([Fault("", "invalid_batch", text, {"most": MAX_BATCH})])
        return submit.all_or_none(self._submit, body)
