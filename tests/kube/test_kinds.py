"""Runs that are no Job, on real Kubernetes: what its controllers make of them, and what is left."""

import pytest
import yaml

from clusters.manifests.names import rank_of
from tests.e2e.portal import RunningPortal
from tests.e2e.test_journeys import LESSON, NAMESPACE, differences
from tests.kube.admin import Json
from tests.kube.plane import ControlPlane
from tests.kube.test_dispatch import LONG, objects

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

ORDINAL = "apps.kubernetes.io/pod-index"


def paths(sample: Json, found: Json) -> set[str]:
    """Where an object of the cluster lacks what the sample says."""
    return {each.partition(": ")[0] for each in differences(sample, found)}


def test_the_lessons_pod_runs_as_it_is_where_it_was_placed(portal: RunningPortal, kube_plane: ControlPlane) -> None:
    text = (LESSON / "training_pod.yaml").read_text()
    job_id = portal.api.submit(text)

    job = portal.until_state(job_id, "running", "succeeded")
    (found,) = objects(kube_plane, "Pod", job_id)
    assert paths(yaml.safe_load(text), found) <= {".metadata.name", ".spec.containers[0].name"}
    assert found["spec"]["nodeName"] == job["placement"]["nodes"][0]["node"]
    assert objects(kube_plane, "Job", job_id) == []

    job = portal.until_state(job_id, "succeeded")
    assert (job["attempt"], job["outcome"]["exit_code"]) == (1, 0)
    assert portal.held() == 0


def test_a_stateful_set_starts_whole_where_it_was_placed_and_leaves_nothing(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    spec = yaml.safe_load((LESSON / "stateful_set.yaml").read_text())
    del spec["spec"]["template"]["spec"]["volumes"]
    del spec["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    job_id = portal.api.submit(yaml.safe_dump(spec))

    job = portal.until_state(job_id, "running")
    planned = {rank["rank"]: rank["node"] for rank in job["placement"]["nodes"]}
    pods = objects(kube_plane, "Pod", job_id)
    assert {int(pod["metadata"]["labels"][ORDINAL]): pod["spec"]["nodeName"] for pod in pods} == planned
    assert len(planned) == 4
    (made,) = objects(kube_plane, "StatefulSet", job_id)
    assert made["status"]["replicas"] == 4
    assert paths(spec, made) <= {
        ".metadata.name",
        ".spec.serviceName",
        ".spec.selector.matchLabels.app",
        ".spec.template.spec.containers[0].name",
    }
    assert portal.held() == 8

    kube_plane.admin.delete("Pod", NAMESPACE, pods[0]["metadata"]["name"])
    portal.wait_for(lambda: portal.api.job(job_id)["attempt"] == 2, "the whole gang starts anew")
    portal.until_state(job_id, "running")
    assert len(objects(kube_plane, "Pod", job_id)) == 4

    portal.api.act(job_id, "cancel")
    portal.until_state(job_id, "cancelled")
    for kind in ("StatefulSet", "Pod", "Service"):
        assert objects(kube_plane, kind, job_id) == []
    assert portal.held() == 0


def test_workers_and_parameter_servers_start_together_and_end_with_the_workers(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    servers = {"name": "ps", "workers": 3, "cpu": {"request": "2"}, **LONG}
    spec = {"name": "ps", "image": "example.org/t:1", "workers": 2, "gpus_per_worker": 4, "env": {"SIM_RUN_S": "8"}}
    job_id = portal.api.submit({**spec, "pod_sets": [servers], "accelerators": ["h100"]})

    job = portal.until_state(job_id, "running")
    planned = {rank["rank"]: rank["node"] for rank in job["placement"]["nodes"]}
    pods = objects(kube_plane, "Pod", job_id)
    for pod in pods:
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = required["nodeSelectorTerms"]
        (asked,) = term["matchExpressions"]
        assert (asked["key"], asked["operator"], len(asked["values"])) == ("nvidia.com/gpu.product", "In", 1)
        assert "H100" in asked["values"][0]
        assert term["matchFields"][0]["values"] == [pod["spec"]["nodeName"]]
    assert {rank_of(pod, "muster.internal"): pod["spec"]["nodeName"] for pod in pods} == planned
    assert sorted(planned) == [0, 1, 2, 3, 4]
    assert portal.held() == 8

    job = portal.until_state(job_id, "succeeded")
    assert (job["attempt"], job["outcome"]["exit_code"], portal.held()) == (1, 0, 0)
    left = objects(kube_plane, "Pod", job_id)
    assert {pod["status"]["phase"] for pod in left} == {"Succeeded"}


def test_a_runtime_class_that_is_not_there_is_told_in_the_servers_own_words(portal: RunningPortal) -> None:
    spec = {"name": "kata", "image": "example.org/t:1", "workload": "pod", "runtime_class": "nothing", **LONG}

    job = portal.until_state(portal.api.submit(spec), "failed")

    assert job["outcome"]["code"] == "refused"
    assert 'RuntimeClass "nothing" not found' in job["outcome"]["message"]
    assert portal.held() == 0
