"""The samples that people are shown go in as they are and come out as they were, but for one table."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from clusters import quantities
from clusters.manifests.values import Json
from jobs.jobspec import lesson, yaml_text
from jobs.jobspec.checks import parse
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.manifest_in import spec_from_yaml
from jobs.jobspec.problem import SpecError
from tests.jobspec.documents import faults_of
from tests.jobspec.rendered import objects_of

# What people are shown as examples is what is checked here.
SAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TEAM = {"team": "vision"}
LABEL_NAMES = ("installation", "run", "attempt", "epoch", "tenant")
SAMPLE_NAMES = ("training_job", "inference", "training_pod", "llm_pod", "stateful_set", "cron_job")
TEMPLATE_OF_SAMPLE = {
    "training_job": lesson.PYTORCH_SINGLE,
    "inference": lesson.HTTP_MODEL_SERVER,
    "cron_job": lesson.RETRAINING,
}

# What the GPU types of a sample are called on nodes.
NODE_LABELS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "llm_pod": {"nvidia.com/gpu.product": ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-SXM5-80GB")}
}
_OURS = ("app.kubernetes.io/managed-by", *(f"muster.internal/{key}" for key in LABEL_NAMES))

# The only differences between what a person gives and what the cluster gets, and why.
ALLOWED = {
    "Job": {
        "metadata.name": "run and attempt make it unique",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours, by which we find our objects",
        "metadata.annotations": "fingerprint and plan",
        "spec.suspend": "opened when its place is certain",
        "spec.completionMode": "ranks",
        "spec.podReplacementPolicy": "no second pod beside a dying one",
        "spec.template.metadata": "labels of ours",
        "spec.template.spec.schedulingGates": "holds the pod until it is placed",
        "spec.template.spec.tolerations": "taints of GPU nodes, and a lost node for a minute only",
        "spec.template.spec.terminationGracePeriodSeconds": "time for a checkpoint",
        "spec.template.spec.automountServiceAccountToken": "a job has no business with the API",
        "spec.template.spec.enableServiceLinks": "no variables of foreign services",
        "spec.template.spec.containers[0].name": "one name for logs and probes",
    },
    "Deployment": {
        "metadata.name": "run and attempt make it unique",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours and those of the template",
        "metadata.annotations": "fingerprint",
        "spec.selector.matchLabels.muster.internal/run": "services from one template share no pods",
        "spec.strategy": "no GPU to surge onto",
        "spec.progressDeadlineSeconds": "waiting for GPUs is no failure",
        "spec.template.metadata.labels.app.kubernetes.io/managed-by": "ours",
        "spec.template.metadata.labels.muster.internal/installation": "ours",
        "spec.template.metadata.labels.muster.internal/run": "ours",
        "spec.template.metadata.labels.muster.internal/attempt": "ours",
        "spec.template.metadata.labels.muster.internal/epoch": "ours",
        "spec.template.metadata.labels.muster.internal/tenant": "ours",
        "spec.template.spec.schedulingGates": "holds each replica until it is placed",
        "spec.template.spec.topologySpreadConstraints": "replicas apart where they can be",
        "spec.template.spec.tolerations": "taints of GPU nodes, and a lost node for a minute only",
        "spec.template.spec.terminationGracePeriodSeconds": "time to drain",
        "spec.template.spec.automountServiceAccountToken": "a server has no business with the API",
        "spec.template.spec.enableServiceLinks": "no variables of foreign services",
        "spec.template.spec.containers[0].name": "one name for logs and probes",
    },
    "Pod": {
        "metadata.name": "run and attempt make it unique",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours, by which we find our objects",
        "metadata.annotations": "fingerprint",
        "spec.restartPolicy": "a quick run ends",
        "spec.schedulingGates": "holds the pod until it is placed",
        "spec.tolerations": "taints of GPU nodes, and a lost node for a minute only",
        "spec.terminationGracePeriodSeconds": "time for a checkpoint",
        "spec.automountServiceAccountToken": "a job has no business with the API",
        "spec.enableServiceLinks": "no variables of foreign services",
        "spec.containers[0].name": "one name for logs and probes",
    },
    "CronJob": {
        "metadata.name": "run and attempt make it unique",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours, by which we find our objects",
        "metadata.annotations": "fingerprint",
        "spec.suspend": "Kubernetes' default, written out; paused on its page",
        "spec.successfulJobsHistoryLimit": "Kubernetes' default, written out",
        "spec.failedJobsHistoryLimit": "Kubernetes' default, written out",
        "spec.jobTemplate.metadata": "labels of ours, by which each Job is found",
        "spec.jobTemplate.spec.suspend": "each Job waits for its place",
        "spec.jobTemplate.spec.completionMode": "ranks",
        "spec.jobTemplate.spec.podReplacementPolicy": "no second pod beside a dying one",
        "spec.jobTemplate.spec.template.metadata": "labels of ours",
        "spec.jobTemplate.spec.template.spec.schedulingGates": "holds the pod until it is placed",
        "spec.jobTemplate.spec.template.spec.tolerations": "taints of GPU nodes, and a lost node for a minute only",
        "spec.jobTemplate.spec.template.spec.terminationGracePeriodSeconds": "time for a checkpoint",
        "spec.jobTemplate.spec.template.spec.automountServiceAccountToken": "a job has no business with the API",
        "spec.jobTemplate.spec.template.spec.enableServiceLinks": "no variables of foreign services",
        "spec.jobTemplate.spec.template.spec.containers[0].name": "one name for logs and probes",
    },
    "StatefulSet": {
        "metadata.name": "run and attempt make it unique",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours and those of the template",
        "metadata.annotations": "fingerprint",
        "spec.serviceName": "that of the set",
        "spec.updateStrategy": "nothing restarts ranks one by one",
        "spec.selector.matchLabels.app": "two sets from one template share no pods",
        "spec.selector.matchLabels.muster.internal/run": "two sets from one template share no pods",
        "spec.selector.matchLabels.muster.internal/attempt": "nor do two attempts",
        **{f"spec.template.metadata.labels.{key}": "ours" for key in _OURS},
        "spec.template.spec.restartPolicy": "Kubernetes' default, written out",
        "spec.template.spec.schedulingGates": "holds each pod until its gang is placed",
        "spec.template.spec.tolerations": "taints of GPU nodes, and a lost node for a minute only",
        "spec.template.spec.terminationGracePeriodSeconds": "time for a checkpoint",
        "spec.template.spec.automountServiceAccountToken": "a job has no business with the API",
        "spec.template.spec.enableServiceLinks": "no variables of foreign services",
        "spec.template.spec.containers[0].name": "one name for logs and probes",
        "spec.template.spec.containers[0].env": "what ranks need to find each other",
    },
    "Service": {
        "metadata.name": "that of its Deployment",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours",
        "spec.selector.muster.internal/run": "services from one template share no pods",
    },
}


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_a_sample_comes_out_equal_but_for_the_table(name: str) -> None:
    assert _differences(_sample(name), _rendered(name)) == ALLOWED_IN[name]


def test_the_sample_with_parameter_servers_is_its_template() -> None:
    assert _spec("parameter_server") == parse({**lesson.PARAMETER_SERVER.document, **TEAM})


@pytest.mark.parametrize(("name", "template"), TEMPLATE_OF_SAMPLE.items())
def test_a_template_is_its_sample(name: str, template: lesson.Template) -> None:
    assert parse({**template.document, **TEAM}) == _spec(name)


@pytest.mark.parametrize("change", ["image", "backoffLimit", "claim", "limit"])
def test_any_other_difference_is_seen(change: str) -> None:
    rendered = objects_of(_spec("training_job"))
    pod = rendered[0]["spec"]["template"]["spec"]
    changes: Mapping[str, tuple[Json, str, object]] = {
        "image": (pod["containers"][0], "image", "other"),
        "backoffLimit": (rendered[0]["spec"], "backoffLimit", 0),
        "claim": (pod["volumes"][0]["persistentVolumeClaim"], "claimName", "other"),
        "limit": (pod["containers"][0]["resources"]["limits"], "memory", "33Gi"),
    }
    target, key, value = changes[change]
    target[key] = value
    assert len(_differences(_sample("training_job"), rendered) - ALLOWED_IN["training_job"]) == 1


def test_the_service_stays_a_cluster_ip_from_80_to_8080() -> None:
    service = objects_of(_spec("inference"))[1]
    assert service["spec"]["type"] == "ClusterIP"
    assert service["spec"]["ports"] == [{"port": 80, "targetPort": 8080}]


def test_a_pod_of_the_lesson_asks_for_what_it_limits_and_is_no_job() -> None:
    [pod] = objects_of(_spec("training_pod"))
    assert pod["kind"] == "Pod"
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "4", "memory": "64Gi", "cpu": "16"}
    assert resources["requests"] == {"nvidia.com/gpu": "4", "memory": "32Gi", "cpu": "8"}


def test_a_pod_that_asks_for_other_gpus_than_it_limits_is_refused() -> None:
    text = _text("training_pod").replace("nvidia.com/gpu: 4\n", "nvidia.com/gpu: 2\n", 1)
    with pytest.raises(SpecError, match="gpu_request_limit_differ"):
        spec_from_yaml(text, defaults=TEAM)


@pytest.mark.parametrize("template", lesson.TEMPLATES, ids=lambda template: template.name)
def test_a_template_needs_a_team_only(template: lesson.Template) -> None:
    assert faults_of(template.document) == [("team", "required")]
    assert lesson.by_name(template.name) is template
    assert parse({**template.document, **TEAM}).kind == template.kind


ALLOWED_IN = {
    "training_job": {f"Job {path}" for path in ALLOWED["Job"]},
    "training_pod": {f"Pod {path}" for path in ALLOWED["Pod"]},
    # The sample names no requests; ours are the limits, as the API server would fill them in.
    "llm_pod": {f"Pod {path}" for path in ALLOWED["Pod"]} | {"Pod spec.containers[0].resources.requests"},
    "cron_job": {f"CronJob {path}" for path in ALLOWED["CronJob"]},
    "stateful_set": {f"StatefulSet {path}" for path in ALLOWED["StatefulSet"]},
    "inference": {f"{kind} {path}" for kind in ("Deployment", "Service") for path in ALLOWED[kind]},
}


def _text(name: str) -> str:
    return (SAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def _spec(name: str) -> JobSpec:
    return spec_from_yaml(_text(name), defaults=TEAM)


def _rendered(name: str) -> list[Json]:
    """As the cluster gets it; a set's headless Service, which no sample brings, stands for itself."""
    made = objects_of(_spec(name), node_labels=NODE_LABELS.get(name, {}))
    return made[:1] if name == "stateful_set" else made


def _sample(name: str) -> list[object]:
    return yaml_text.read(_text(name))


def _differences(given: list[object], rendered: list[Json]) -> set[str]:
    return {
        f"{after['kind']} {path}"
        for before, after in zip(given, rendered, strict=True)
        for path in _differing_paths(before, after, "")
    }


def _differing_paths(before: object, after: object, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before.keys() | after.keys():
            inner = f"{path}.{key}" if path else str(key)
            yield from _differing_paths(before.get(key), after.get(key), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differing_paths(old, new, f"{path}[{index}]")
    elif before != after and not (".resources." in path and _same_quantity(before, after)):
        yield path


def _same_quantity(before: object, after: object) -> bool:
    if None in (before, after):
        return False
    return quantities.parse(str(before)) == quantities.parse(str(after))
