"""The lesson's Job and model server go in as they are and come out as they were, but for one table."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from clusters import quantities
from clusters.manifests.values import Json
from jobs.jobspec import lesson, yaml_text
from jobs.jobspec.checks import parse
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.manifest_in import spec_from_yaml
from tests.jobspec.documents import faults_of
from tests.jobspec.rendered import objects_of

# What people are shown as examples is what is checked here; the pods are samples of what is refused.
SAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PODS = Path(__file__).parent / "lesson"
TEAM = {"team": "vision"}
TEMPLATE_OF_SAMPLE = {"training_job": lesson.PYTORCH_SINGLE, "inference": lesson.HTTP_MODEL_SERVER}

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
    "Service": {
        "metadata.name": "that of its Deployment",
        "metadata.namespace": "the team's",
        "metadata.labels": "ours",
        "spec.selector.muster.internal/run": "services from one template share no pods",
    },
}


@pytest.mark.parametrize("name", TEMPLATE_OF_SAMPLE)
def test_a_sample_comes_out_equal_but_for_the_table(name: str) -> None:
    assert _differences(_sample(name), objects_of(_spec(name))) == ALLOWED_IN[name]


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


@pytest.mark.parametrize("name", ["training_pod", "llm_pod"])
def test_the_pods_of_the_lesson_are_not_supported_yet(name: str) -> None:
    text = (PODS / f"{name}.yaml").read_text(encoding="utf-8")
    [document] = yaml_text.read(text)
    assert isinstance(document, dict)
    with pytest.raises(Exception, match="workload: not_supported_yet"):
        spec_from_yaml(text, defaults=TEAM)


@pytest.mark.parametrize("template", lesson.TEMPLATES, ids=lambda template: template.name)
def test_a_template_needs_a_team_only(template: lesson.Template) -> None:
    assert faults_of(template.document) == [("team", "required")]
    assert lesson.by_name(template.name) is template
    assert parse({**template.document, **TEAM}).kind == template.kind


ALLOWED_IN = {
    "training_job": {f"Job {path}" for path in ALLOWED["Job"]},
    "inference": {f"{kind} {path}" for kind in ("Deployment", "Service") for path in ALLOWED[kind]},
}


def _text(name: str) -> str:
    return (SAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def _spec(name: str) -> JobSpec:
    return spec_from_yaml(_text(name), defaults=TEAM)


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
    return quantities.parse(str(before)) == quantities.parse(str(after))
