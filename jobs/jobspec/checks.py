"""Outside data -> JobSpec: every limit, every default, and the rules between fields."""

from collections.abc import Mapping
from dataclasses import replace

from jobs.jobspec import parts, rules, syntax
from jobs.jobspec.fields import Amount, JobSpec, Kind, Qos, Schedule, SpreadPolicy, Topology, Workload
from jobs.jobspec.problem import Problem, SpecError
from jobs.jobspec.reader import Reader, type_name

KINDS: tuple[Kind, ...] = ("training", "inference")
# What each kind may be on a cluster, the default first.
WORKLOADS: Mapping[Kind, tuple[Workload, ...]] = {
    "training": ("job", "pod", "statefulset", "cronjob"),
    "inference": ("deployment",),
}
# Those whose pods stay after their end, until their time to live is over.
KEPT_WORKLOADS: tuple[Workload, ...] = ("job", "pod", "cronjob")
KIND_OF_WORKLOAD: Mapping[str, Kind] = {
    "job": "training",
    "pod": "training",
    "statefulset": "training",
    "cronjob": "training",
    "deployment": "inference",
}
# Fields of one kind only; with the other kind they are refused, never ignored.
ONLY_FOR_TRAINING = ("max_runtime_s", "backoff_limit", "ttl_s", "checkpoint", "pod_sets", "schedule")
ONLY_FOR_INFERENCE = ("replicas", "port", "service_port", "readiness", "liveness")
SPREAD_POLICIES: tuple[SpreadPolicy, ...] = ("auto", "pack", "spread")
QOS_CLASSES: tuple[Qos, ...] = ("guaranteed",)

WORKERS_MAX = 512
GPUS_PER_WORKER_MAX = 16
REPLICAS_MAX = 100
BACKOFF_LIMIT_MAX = 100
RUNTIME_MAX_S = 365 * 86_400
TTL_MIN_S = 60  # The portal reads how a job ended from the cluster: the Job must outlive a short outage.
TTL_MAX_S = 30 * 86_400
PORT_MAX = 65_535
ENV_MAX = 200
LABELS_MAX = 32
ARGUMENTS_MAX = 256
LISTED_MAX = 32
POD_SETS_MAX = 4
TEXT_TOTAL_MAX = 262_144  # All variables or arguments together: the API server stores objects of about 1.5 MB.

BACKOFF_LIMIT_SINGLE = 3
BACKOFF_LIMIT_STATEFUL = 3
TTL_S = 86_400
PORT = 8080
SERVICE_PORT = 80
# From nine GPUs on a job spans nodes, and the network between them decides its speed.
GPUS_WITHOUT_TOPOLOGY = 8


def parse(document: Mapping[str, object], *, partial: bool = False) -> JobSpec:
    """The checked JobSpec of a document, defaults filled in.

    `partial` is for a form that is still being typed: required fields may be missing (they come out empty),
    but what is there must be right. Raises SpecError with all problems, and nothing else, for any JSON-like
    value.
    """
    problems: list[Problem] = []
    reader = Reader(_mapping(document), problems)
    spec = _read(reader)
    reader.close()
    if partial:
        problems = [problem for problem in problems if problem.code != "required"]
    if not problems:
        problems.extend(rules.broken(spec))
    if problems:
        raise SpecError(tuple(problems))
    return spec


def parse_scale(document: object) -> int:
    """The replicas that `{"replicas": 3}` asks for. Raises SpecError, and nothing else, for any JSON-like value."""
    problems: list[Problem] = []
    reader = Reader(_mapping(document), problems)
    replicas = reader.require("replicas", reader.whole("replicas", 0, REPLICAS_MAX), instead=0)
    reader.close()
    if problems:
        raise SpecError(tuple(problems))
    return replicas


def parse_pause(document: object) -> bool:
    """What `{"is_paused": true}` says. Raises SpecError, and nothing else, for any JSON-like value."""
    problems: list[Problem] = []
    reader = Reader(_mapping(document), problems)
    is_paused = reader.require("is_paused", reader.flag("is_paused"), instead=False)
    reader.close()
    if problems:
        raise SpecError(tuple(problems))
    return is_paused


def _mapping(document: object) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        numbers = {"expected": "map", "given": type_name(document)}
        raise SpecError((Problem(field="", code="wrong_type", numbers=numbers),))
    return document


def _read(reader: Reader) -> JobSpec:
    kind = _kind(reader)
    return _read_training(reader) if kind == "training" else _read_service(reader)


def _kind(reader: Reader) -> Kind:
    kind = reader.choice("kind", KINDS)
    workload = reader.choice("workload", KIND_OF_WORKLOAD)
    if workload is None:
        return kind or "training"
    implied = KIND_OF_WORKLOAD[workload]
    if kind is not None and kind != implied:
        reader.refuse("workload", "kind_workload_differ", kind=kind, workload=workload)
    return kind or implied


def _workload(reader: Reader, kind: Kind) -> Workload:
    asked = reader.value("workload")
    return next((workload for workload in WORKLOADS[kind] if workload == asked), WORKLOADS[kind][0])


def _read_training(reader: Reader) -> JobSpec:
    _refuse_fields(reader, ONLY_FOR_INFERENCE, "only_for_inference")
    pod_sets = reader.parts("pod_sets", parts.read_pod_set, most=POD_SETS_MAX)
    spec = replace(_read_common(reader, "training"), pod_sets=pod_sets)
    if spec.workload == "statefulset" and reader.has("ttl_s"):
        reader.refuse("ttl_s", "not_of_stateful_sets")
    ttl_s = reader.whole("ttl_s", TTL_MIN_S, TTL_MAX_S)
    backoff_limit = reader.whole("backoff_limit", 0, BACKOFF_LIMIT_MAX)
    return replace(
        spec,
        topology=reader.part("topology", parts.read_topology) or _default_topology(spec.gpus),
        max_runtime_s=reader.whole("max_runtime_s", 1, RUNTIME_MAX_S),
        backoff_limit=_default_backoff_limit(spec) if backoff_limit is None else backoff_limit,
        ttl_s=TTL_S if ttl_s is None and spec.workload in KEPT_WORKLOADS and not reader.is_null("ttl_s") else ttl_s,
        checkpoint=reader.part("checkpoint", parts.read_checkpoint),
        schedule=_schedule(reader, spec.workload),
    )


def _schedule(reader: Reader, workload: Workload) -> Schedule | None:
    """A cron text alone is enough; the rest of a schedule has defaults."""
    if workload != "cronjob":
        if reader.has("schedule"):
            reader.refuse("schedule", "schedule_of_cronjobs_only")
        return None
    if not reader.has("schedule"):
        reader.refuse("schedule", "required")
        return None
    if not isinstance(reader.value("schedule"), str):
        return reader.part("schedule", parts.read_schedule)
    text = parts.read_cron(reader, "schedule")
    return None if text is None else Schedule(cron=text)


def _read_service(reader: Reader) -> JobSpec:
    _refuse_fields(reader, ONLY_FOR_TRAINING, "only_for_training")
    spec = _read_common(reader, "inference")
    replicas = reader.whole("replicas", 0, REPLICAS_MAX)
    port = reader.whole("port", 1, PORT_MAX)
    service_port = reader.whole("service_port", 1, PORT_MAX)
    port = PORT if port is None and not reader.is_null("port") else port
    return replace(
        spec,
        topology=reader.part("topology", parts.read_topology) or Topology(),
        replicas=1 if replicas is None else replicas,
        port=port,
        service_port=SERVICE_PORT if service_port is None and not reader.is_null("service_port") else service_port,
        readiness=reader.part("readiness", parts.read_readiness(port)),
        liveness=reader.part("liveness", parts.read_liveness(port)),
    )


def _read_common(reader: Reader, kind: Kind) -> JobSpec:
    workers = reader.whole("workers", 1, WORKERS_MAX) or 1
    qos = reader.choice("qos", QOS_CLASSES)
    return JobSpec(
        name=reader.require("name", reader.text("name", syntax.NAME), instead=""),
        team=reader.require("team", reader.text("team", syntax.SLUG), instead=""),
        queue=reader.text("queue", syntax.SLUG),
        kind=kind,
        workload=_workload(reader, kind),
        priority=_priority(reader),
        labels=_labels(reader),
        description=reader.text("description", syntax.DESCRIPTION) or "",
        image=reader.require("image", reader.text("image", syntax.IMAGE), instead=""),
        image_pull_secret=reader.text("image_pull_secret", syntax.OBJECT_NAME),
        command=reader.texts("command", syntax.ARGUMENT, most=ARGUMENTS_MAX, total=TEXT_TOTAL_MAX),
        args=reader.texts("args", syntax.ARGUMENT, most=ARGUMENTS_MAX, total=TEXT_TOTAL_MAX),
        env=reader.pairs("env", syntax.ENV_NAME, syntax.ENV_VALUE, most=ENV_MAX, total=TEXT_TOTAL_MAX),
        secrets=reader.parts("secrets", parts.read_secret, most=LISTED_MAX),
        code=reader.part("code", parts.read_code),
        workers=workers,
        min_workers=reader.whole("min_workers", 1, WORKERS_MAX) or workers,
        gpus_per_worker=reader.whole("gpus_per_worker", 1, GPUS_PER_WORKER_MAX) or 1,
        accelerators=reader.names("accelerators", syntax.FLAVOR, most=LISTED_MAX),
        cpu=_amount(reader, "cpu", qos),
        memory=_amount(reader, "memory", qos),
        shared_memory=reader.quantity("shared_memory", syntax.QUANTITY),
        huge_pages=reader.part("huge_pages", parts.read_huge_pages),
        qos=qos,
        runtime_class=reader.text("runtime_class", syntax.OBJECT_NAME),
        spread_policy=reader.choice("spread_policy", SPREAD_POLICIES) or "auto",
        volumes=reader.parts("volumes", parts.read_volume, most=LISTED_MAX),
        tolerations=reader.parts("tolerations", parts.read_toleration, most=LISTED_MAX),
        clusters=reader.names("clusters", syntax.SLUG, most=LISTED_MAX),
        parent=reader.text("parent", syntax.PUBLIC_ID),
    )


def _amount(reader: Reader, name: str, qos: Qos | None) -> Amount | None:
    """Request and limit; guaranteed ones are the same, so that one of them is enough."""
    amount = reader.part(name, parts.read_amount)
    if amount is None or qos is None or amount.limit is not None:
        return amount
    return replace(amount, limit=amount.request)


def _priority(reader: Reader) -> str | None:
    priority = reader.text("priority", syntax.PRIORITY)
    if priority is not None and priority.startswith("system-"):
        reader.refuse("priority", "reserved", value=priority)
    return priority


def _labels(reader: Reader) -> dict[str, str]:
    labels = reader.pairs("labels", syntax.LABEL_KEY, syntax.LABEL_VALUE, most=LABELS_MAX)
    for key in filter(syntax.is_reserved_label, labels):
        reader.refuse(f"labels.{key}", "reserved", value=key)
    return labels


def _refuse_fields(reader: Reader, names: tuple[str, ...], code: str) -> None:
    for name in names:
        if reader.has(name):
            reader.refuse(name, code)


def _default_topology(gpus: int) -> Topology:
    if gpus <= GPUS_WITHOUT_TOPOLOGY:
        return Topology()
    return Topology(mode="prefer", level=parts.PREFERRED_LEVEL)


def _default_backoff_limit(spec: JobSpec) -> int:
    if spec.workload == "statefulset":
        return BACKOFF_LIMIT_STATEFUL
    return 0 if spec.is_gang or spec.workload == "pod" else BACKOFF_LIMIT_SINGLE
