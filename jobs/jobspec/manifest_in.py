"""YAML -> JobSpec: our own document, or Kubernetes objects as people have them.

What a JobSpec cannot hold is refused with the field's name; nothing is dropped silently.
"""

from collections.abc import Callable, Mapping

from jobs.jobspec import checks, pod_in, yaml_text
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.problem import Problem, SpecError, shown
from jobs.jobspec.reader import Reader, type_name
from jobs.jobspec.syntax import LABEL_KEY, LABEL_VALUE

Document = dict[str, object]

# Kubernetes' own default where a Job names none, so that the Job means what its author thinks.
KUBERNETES_BACKOFF_LIMIT = 6
CONCURRENCY = {"Allow": "allow", "Forbid": "forbid", "Replace": "replace"}


def spec_from_yaml(text: str, *, defaults: Mapping[str, object], partial: bool = False) -> JobSpec:
    """The JobSpec of a YAML text; `defaults` (team, queue, priority) fill in what the text leaves open.

    Raises SpecError and nothing else.
    """
    document = document_from_yaml(text)
    given = {name: value for name, value in document.items() if value not in (None, "") or name not in defaults}
    return checks.parse({**defaults, **given}, partial=partial)


def document_from_yaml(text: str) -> Document:
    """The JobSpec document of a YAML text, its single values not checked yet. Raises SpecError."""
    documents = yaml_text.read(text)
    if not documents:
        raise _refusal("yaml_empty")
    mappings = [_mapping(document) for document in documents]
    if len(mappings) == 1 and "apiVersion" not in mappings[0]:
        return mappings[0]
    if any("apiVersion" not in mapping for mapping in mappings):
        raise _refusal("yaml_several_specs", count=len(mappings))
    problems: list[Problem] = []
    document = _read_objects({_kind(item): item for item in mappings}, len(mappings), problems)
    if problems:
        raise SpecError(tuple(problems))
    return document


def _mapping(document: object) -> Document:
    if not isinstance(document, dict):
        raise _refusal("wrong_type", expected="map", given=type_name(document))
    return document


def _kind(document: Document) -> tuple[str, str]:
    return str(document.get("apiVersion", ""))[:80], str(document.get("kind", ""))[:80]


def _read_objects(objects: Mapping[tuple[str, str], Document], count: int, problems: list[Problem]) -> Document:
    service = objects.get(("v1", "Service"))
    rest = {kind: item for kind, item in objects.items() if kind != ("v1", "Service")}
    build = _BUILDERS.get(next(iter(rest))) if len(rest) == 1 else None
    is_whole = count == len(objects) and (service is None or ("apps/v1", "Deployment") in rest)
    if build is None or not is_whole:
        kinds = ", ".join(shown(" ".join(kind).strip() or "?") for kind in objects)
        raise _refusal("unknown_objects", kinds=shown(kinds), count=count)
    document = _read_object(next(iter(rest.values())), "", build, problems)
    if service is not None:
        labels = document.get("labels")
        read = _read_service(labels if isinstance(labels, dict) else {}, document.get("port"))
        return document | _read_object(service, "service", read, problems)
    return document if build is not _read_deployment else {**document, "service_port": None}


def _read_object(item: Document, path: str, build: Callable[[Reader], Document], problems: list[Problem]) -> Document:
    reader = Reader(item, problems, path, unknown="cannot_carry")
    reader.value("apiVersion")
    reader.value("kind")
    document = build(reader)
    reader.close()
    return document


def _read_job(reader: Reader) -> Document:
    return _with_labels(reader, {"kind": "training", "workload": "job"}, _read_job_spec)


def _read_job_spec(reader: Reader) -> Document:
    workers = _read_workers(reader)
    backoff_limit = reader.value("backoffLimit")
    document: Document = {
        "workers": workers,
        "ttl_s": reader.value("ttlSecondsAfterFinished"),
        # The portal counts the time from Running on and stops the job itself.
        "max_runtime_s": reader.value("activeDeadlineSeconds"),
    }
    reader.choice("completionMode", ("NonIndexed", "Indexed"))
    if reader.flag("suspend"):
        reader.refuse("suspend", "cannot_carry")
    if workers == 1:
        backoff_limit = KUBERNETES_BACKOFF_LIMIT if backoff_limit is None else backoff_limit
    document |= {} if backoff_limit is None else {"backoff_limit": backoff_limit}
    restart = "OnFailure" if workers == 1 and backoff_limit != 0 else "Never"
    return document | _read_template(reader, (restart,))


def _read_cron_job(reader: Reader) -> Document:
    return _with_labels(reader, {"kind": "training", "workload": "cronjob"}, _read_cron_job_spec)


def _read_cron_job_spec(reader: Reader) -> Document:
    """What a CronJob leaves out means what it means to Kubernetes: runs may overlap, three and one are kept."""
    policy = reader.choice("concurrencyPolicy", CONCURRENCY) or "Allow"
    if reader.flag("suspend"):
        reader.refuse("suspend", "cannot_carry")
    schedule: Document = {
        "cron": reader.value("schedule"),
        "time_zone": reader.value("timeZone"),
        "concurrency": CONCURRENCY[policy],
        "starting_deadline_s": reader.value("startingDeadlineSeconds"),
        "keep_succeeded": reader.value("successfulJobsHistoryLimit"),
        "keep_failed": reader.value("failedJobsHistoryLimit"),
    }
    if not reader.has("jobTemplate"):
        reader.refuse("jobTemplate", "required")
    given = {name: value for name, value in schedule.items() if value is not None}
    template = reader.part("jobTemplate", lambda item: _with_labels(item, {}, _read_job_spec)) or {}
    return {"schedule": given, **template}


def _read_workers(reader: Reader) -> object:
    """A Job without completions but with parallelism is a work queue, which a gang is not."""
    completions, parallelism = reader.value("completions"), reader.value("parallelism")
    if (1 if completions is None else completions) != (1 if parallelism is None else parallelism):
        reader.refuse("parallelism", "completions_parallelism_differ")
    return 1 if completions is None else completions


def _read_deployment(reader: Reader) -> Document:
    return _with_labels(reader, {"kind": "inference", "workload": "deployment"}, _read_deployment_spec)


def _read_deployment_spec(reader: Reader) -> Document:
    replicas = reader.value("replicas")
    selector = reader.part("selector", _read_selector)
    document = {"replicas": 1 if replicas is None else replicas, **_read_template(reader, ("Always",))}
    _check_selector(reader, "selector", selector, document.get("labels"))
    return {"port": None, **document}


def _read_selector(reader: Reader) -> dict[str, str]:
    return reader.pairs("matchLabels", LABEL_KEY, LABEL_VALUE, most=checks.LABELS_MAX)


def _check_selector(reader: Reader, key: str, selector: dict[str, str] | None, labels: object) -> None:
    carried = labels if isinstance(labels, dict) else {}
    if not reader.is_clean:
        return  # the labels may be missing here for a fault that was told already
    if not selector or not selector.items() <= carried.items():
        reader.refuse(key, "selector_differs")


def _read_service(labels: dict[str, str], port: object) -> Callable[[Reader], Document]:
    def read_spec(reader: Reader) -> Document:
        selector = reader.pairs("selector", LABEL_KEY, LABEL_VALUE, most=checks.LABELS_MAX)
        _check_selector(reader, "selector", selector, labels)
        reader.choice("type", ("ClusterIP",))
        ports = reader.parts("ports", lambda item: _read_service_port(item, port), most=1)
        if reader.value("ports") in (None, []):
            reader.refuse("ports", "required")
        return {"service_port": ports[0]} if ports else {}

    def read(reader: Reader) -> Document:
        metadata = reader.part("metadata", _read_metadata) or {}
        if metadata.get("labels"):
            reader.refuse("metadata.labels", "cannot_carry")
        return reader.part("spec", read_spec) or {}

    return read


def _read_service_port(reader: Reader, container_port: object) -> object:
    reader.choice("protocol", ("TCP",))
    port = reader.value("port")
    if not reader.has("port"):
        reader.refuse("port", "required")
    target = reader.value("targetPort")
    if (port if target is None else target) != container_port:
        reader.refuse("targetPort", "target_port_differs")
    return port


def _read_pod(reader: Reader) -> Document:
    return _with_labels(reader, {"kind": "training", "workload": "pod"}, _read_lone_pod)


def _read_lone_pod(reader: Reader) -> Document:
    """A quick run ends, so it is never started again; most samples leave the policy out, whose default is "Always"."""
    limit = reader.value("activeDeadlineSeconds")
    return {"max_runtime_s": limit, **pod_in.read_pod_spec(reader, ("Never",), is_alone=True)}


def _read_stateful_set(reader: Reader) -> Document:
    return _with_labels(reader, {"kind": "training", "workload": "statefulset"}, _read_stateful_set_spec)


def _read_stateful_set_spec(reader: Reader) -> Document:
    workers = reader.value("replicas")
    reader.value("serviceName")  # ours is called like the set, which is called like the run
    if reader.value("podManagementPolicy") != "Parallel":
        reader.refuse("podManagementPolicy", "parallel_only")
    selector = reader.part("selector", _read_selector)
    document = {"workers": 1 if workers is None else workers, **_read_template(reader, ("Always",))}
    _check_selector(reader, "selector", selector, document.get("labels"))
    return document


def _with_labels(reader: Reader, document: Document, build: Callable[[Reader], Document]) -> Document:
    """Labels of the object and of its template are one field: two values for one key cannot be carried."""
    outer = reader.part("metadata", _read_metadata) or {}
    inner = reader.part("spec", build) or {}
    labels: dict[str, str] = {}
    for part in (outer, inner):
        given = part.get("labels")
        for key, value in given.items() if isinstance(given, dict) else ():
            if labels.setdefault(key, value) != value:
                reader.refuse(f"metadata.labels.{shown(key)}", "labels_differ")
    return {**outer, **document, **inner, "labels": labels}


def _read_metadata(reader: Reader) -> Document:
    # The namespace is the team's; the one that is named here would only be right by chance.
    reader.value("namespace")
    labels = reader.pairs("labels", LABEL_KEY, LABEL_VALUE, most=checks.LABELS_MAX)
    return {"name": reader.value("name"), "labels": labels}


def _read_template(reader: Reader, restart: tuple[str, ...]) -> Document:
    if not reader.has("template"):
        reader.refuse("template", "required")

    def read(template: Reader) -> Document:
        metadata = template.part("metadata", _read_template_metadata) or {}
        spec = template.part("spec", lambda item: pod_in.read_pod_spec(item, restart))
        if not template.has("spec"):
            template.refuse("spec", "required")
        return metadata | (spec or {})

    return reader.part("template", read) or {}


def _read_template_metadata(reader: Reader) -> Document:
    return {"labels": reader.pairs("labels", LABEL_KEY, LABEL_VALUE, most=checks.LABELS_MAX)}


def _refusal(code: str, **numbers: int | str) -> SpecError:
    return SpecError((Problem(field="", code=code, numbers=numbers),))


_BUILDERS: Mapping[tuple[str, str], Callable[[Reader], Document]] = {
    ("batch/v1", "Job"): _read_job,
    ("batch/v1", "CronJob"): _read_cron_job,
    ("apps/v1", "Deployment"): _read_deployment,
    ("apps/v1", "StatefulSet"): _read_stateful_set,
    ("v1", "Pod"): _read_pod,
}
