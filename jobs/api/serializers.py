"""What REST shows of jobs: shapes for the schema. The rules for what comes in live in jobs.jobspec."""

from typing import Any

from rest_framework import serializers

from jobs.jobspec.checks import REPLICAS_MAX
from jobs.models import Attempt, Job
from jobs.scheduler.types import ReasonCode
from jobs.selectors.proof import AWAITING_PROOF

Out = serializers.Serializer[Any]


class ReasonOut(Out):
    """Why a job waits: to start or, when it stops, for proof that its pods are gone."""

    code = serializers.ChoiceField(choices=[*(code.value for code in ReasonCode), AWAITING_PROOF])
    message = serializers.CharField()
    numbers = serializers.DictField()


class OutcomeOut(Out):
    """How a job ended."""

    code = serializers.ChoiceField(choices=Job.Outcome.values, allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    rank = serializers.IntegerField(allow_null=True)
    message = serializers.CharField()


class RankOut(Out):
    """Where one rank is."""

    rank = serializers.IntegerField()
    node = serializers.CharField()
    rack = serializers.CharField()
    gpus = serializers.IntegerField()


class PlacementOut(Out):
    """Where a job is, by its newest attempt."""

    cluster = serializers.CharField()
    level = serializers.CharField()
    slowest_link = serializers.CharField()
    nodes = RankOut(many=True)


class StopOut(Out):
    """Why an attempt was stopped."""

    code = serializers.CharField()
    message = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)


class AttemptOut(Out):
    """One try."""

    number = serializers.IntegerField()
    cluster = serializers.CharField()
    object_name = serializers.CharField()
    namespace = serializers.CharField()
    step = serializers.ChoiceField(choices=Attempt.Step.values)
    workers = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    stop = StopOut(allow_null=True)


class ExclusionOut(Out):
    """A node that the job does not use for now, since it failed under it."""

    node = serializers.CharField()
    why = serializers.CharField()
    failed_at = serializers.DateTimeField()
    until = serializers.DateTimeField()


class WarningOut(Out):
    """Something that looks like a mistake and is allowed."""

    field = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()


class JobOut(Out):
    """A job."""

    id = serializers.CharField()
    number = serializers.IntegerField()
    full_name = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=Job.Kind.values)
    workload = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    image = serializers.CharField()
    team = serializers.CharField()
    queue = serializers.CharField()
    owner = serializers.CharField()
    priority = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    spec = serializers.DictField()
    gpus = serializers.IntegerField()
    workers = serializers.IntegerField()
    gpus_per_worker = serializers.IntegerField()
    state = serializers.ChoiceField(choices=Job.State.values)
    outcome = OutcomeOut(allow_null=True)
    reason = ReasonOut(allow_null=True)
    position = serializers.IntegerField(allow_null=True)
    gpus_ahead = serializers.IntegerField(allow_null=True)
    placement = PlacementOut(allow_null=True)
    attempt = serializers.IntegerField()
    attempts = AttemptOut(many=True)
    cluster_stale = serializers.BooleanField()
    exclusions = ExclusionOut(many=True)
    commit = serializers.CharField(allow_null=True)
    endpoint = serializers.CharField(allow_null=True)
    replicas_ready = serializers.IntegerField()
    warnings = WarningOut(many=True)
    parent = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # the field, not DRF's back reference
    # Of a schedule alone: whether it makes no runs for now, and when it comes due next.
    is_paused = serializers.BooleanField(allow_null=True)
    next_times = serializers.ListField(child=serializers.DateTimeField(), allow_null=True)
    is_synthetic = serializers.BooleanField()
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    admitted_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField()


class EventOut(Out):
    """One line of a job's log."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    code = serializers.CharField()
    message = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]  # the field, not the serializer's own property
    actor = serializers.CharField()


class ChartOut(Out):
    """One figure: `figure` has `data` and `layout` of Plotly; a null in `y` was not measured."""

    id = serializers.CharField()
    title = serializers.CharField()
    unit = serializers.CharField()
    figure = serializers.DictField()


class MetricsOut(Out):
    """The figures of a job."""

    charts = ChartOut(many=True)
    age_s = serializers.FloatField(allow_null=True)
    is_stale = serializers.BooleanField()


class PauseIn(Out):
    """Whether a schedule shall make no runs for now."""

    is_paused = serializers.BooleanField()


class ScaleIn(Out):
    """How many replicas a service shall have. For the schema: `jobs.jobspec.checks` reads it."""

    replicas = serializers.IntegerField(min_value=0, max_value=REPLICAS_MAX)
