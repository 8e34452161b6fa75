"""The portal on real Kubernetes, by an account with its own rights and no others."""

from typing import Any

import pytest
import yaml

from tests.e2e.portal import RunningPortal
from tests.e2e.test_journeys import GANG, LESSON, NAMESPACE, differences
from tests.kube.admin import Json
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

INDEX = "batch.kubernetes.io/job-completion-index"
H100 = {**GANG, "accelerators": ["h100"]}
LONG = {"env": {"SIM_RUN_S": "3600"}}


def objects(plane: ControlPlane, kind: str, run: str) -> list[Json]:
    """What the cluster has of a run."""
    return plane.admin.items(kind, NAMESPACE, labels=f"muster.internal/run={run}")


def alive(plane: ControlPlane, run: str) -> list[Json]:
    """The pods of a run that are not over, by rank."""
    pods = [pod for pod in objects(plane, "Pod", run) if pod["status"]["phase"] in ("Pending", "Running")]
    return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"].get(INDEX, 0)))


def test_the_lessons_training_job_runs_as_it_is_where_it_was_placed(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    text = (LESSON / "training_job.yaml").read_text()
    job_id = portal.api.submit(text)

    job = portal.until_state(job_id, "running", "succeeded")
    (found,) = objects(kube_plane, "Job", job_id)
    assert differences(yaml.safe_load(text), found) == []
    pods = objects(kube_plane, "Pod", job_id)
    assert [pod["spec"]["nodeName"] for pod in pods] == [rank["node"] for rank in job["placement"]["nodes"]]

    job = portal.until_state(job_id, "succeeded")
    assert (job["attempt"], job["outcome"]["exit_code"]) == (1, 0)
    (found,) = objects(kube_plane, "Job", job_id)
    assert found["status"]["succeeded"] == 1
    status, log = portal.api.ask("GET", f"jobs/{job_id}/logs/?rank=0&tail=20")
    assert status == 200, log
    assert "KWOK runs no program" in str(log)


def test_a_gang_of_four_whole_nodes_lands_in_one_rack_each_rank_where_it_was_placed(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    job_id = portal.api.submit({**H100, "topology": {"mode": "require", "level": "rack"}})

    job = portal.until_state(job_id, "running")

    planned = {rank["rank"]: rank["node"] for rank in job["placement"]["nodes"]}
    pods = alive(kube_plane, job_id)
    assert {int(pod["metadata"]["labels"][INDEX]): pod["spec"]["nodeName"] for pod in pods} == planned
    assert len(set(planned.values())) == 4
    racks = {node["metadata"]["name"]: node["metadata"]["labels"]["muster.example/rack"] for node in nodes(kube_plane)}
    assert len({racks[node] for node in planned.values()}) == 1
    assert portal.held() == 32
    job = portal.until_state(job_id, "succeeded")
    assert job["attempt"] == 1


def nodes(plane: ControlPlane) -> list[Json]:
    """All nodes."""
    return plane.admin.items("Node")


def test_the_lessons_model_server_serves_and_scales(portal: RunningPortal, kube_plane: ControlPlane) -> None:
    service_id = portal.api.submit((LESSON / "inference.yaml").read_text())
    wait_for_replicas(portal, service_id, 3)

    for replicas in (5, 2):
        portal.api.act(service_id, "scale", {"replicas": replicas})
        wait_for_replicas(portal, service_id, replicas)

    left = portal.wait_for(lambda: _exactly(alive(kube_plane, service_id), 2), "two pods are left")
    assert all(pod["spec"]["nodeName"] for pod in left)
    (service,) = objects(kube_plane, "Service", service_id)
    assert {port["port"]: port["targetPort"] for port in service["spec"]["ports"]} == {80: 8080}


def wait_for_replicas(portal: RunningPortal, service_id: str, count: int) -> None:
    """Until so many serve, and hold so many GPUs."""
    portal.wait_for(lambda: portal.api.job(service_id)["replicas_ready"] == count, f"{count} replicas serve")
    portal.wait_for(lambda: portal.held() == count, f"{count} GPUs are held")


def _exactly(found: list[Json], count: int) -> list[Json] | None:
    return found if len(found) == count else None


def test_a_cancelled_gang_is_gone_before_its_gpus_are_free(portal: RunningPortal, kube_plane: ControlPlane) -> None:
    job_id = portal.api.submit({**H100, **LONG})
    portal.until_state(job_id, "running")

    portal.api.act(job_id, "cancel")
    portal.until_state(job_id, "cancelled")

    assert objects(kube_plane, "Job", job_id) == []
    assert objects(kube_plane, "Pod", job_id) == []
    assert objects(kube_plane, "Service", job_id) == []
    assert portal.held() == 0


def test_a_quota_of_the_namespace_refuses_with_its_own_words(portal: RunningPortal, kube_plane: ControlPlane) -> None:
    hard = {"requests.nvidia.com/gpu": "24"}
    metadata = {"name": "three-nodes", "namespace": NAMESPACE}
    kube_plane.admin.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
    try:
        portal.wait_for(lambda: _is_counted(kube_plane), "the quota is in force")
        job_id = portal.api.submit(H100)
        job = portal.until_state(job_id, "failed")
    finally:
        kube_plane.admin.delete("ResourceQuota", NAMESPACE, "three-nodes")

    assert job["outcome"]["code"] == "refused"
    assert "exceeded quota: three-nodes" in job["outcome"]["message"]
    assert portal.held() == 0


def _is_counted(plane: ControlPlane) -> bool:
    (quota,) = plane.admin.items("ResourceQuota", NAMESPACE)
    return "used" in quota.get("status", {})


def test_a_pod_that_somebody_deletes_takes_its_gang_along_and_all_of_it_starts_anew(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    job_id = portal.api.submit({**H100, "workers": 2, **LONG})
    portal.until_state(job_id, "running")
    first = alive(kube_plane, job_id)

    kube_plane.admin.delete("Pod", NAMESPACE, first[1]["metadata"]["name"])
    job = portal.wait_for(lambda: _second_attempt(portal.api.job(job_id)), "the second attempt runs")

    second = alive(kube_plane, job_id)
    assert {pod["metadata"]["uid"] for pod in first}.isdisjoint(pod["metadata"]["uid"] for pod in second)
    assert [pod["spec"]["nodeName"] for pod in second] == [rank["node"] for rank in job["placement"]["nodes"]]
    assert portal.held() == 16


def _second_attempt(job: dict[str, Any]) -> dict[str, Any] | None:
    return job if (job["state"], job["attempt"]) == ("running", 2) else None


def test_a_program_that_fails_fails_its_job_with_its_exit_code(portal: RunningPortal) -> None:
    env = {"SIM_RUN_S": "1", "SIM_EXIT_CODE": "3"}
    job_id = portal.api.submit({**H100, "workers": 2, "env": env, "backoff_limit": 0})

    job = portal.until_state(job_id, "failed")

    assert job["outcome"]["exit_code"] == 3


def test_an_api_server_that_restarts_loses_nothing(portal: RunningPortal, kube_plane: ControlPlane) -> None:
    job_id = portal.api.submit({**H100, "workers": 2, "env": {"SIM_RUN_S": "20"}})
    portal.until_state(job_id, "running")

    kube_plane.stop_part("kube-apiserver")
    portal.wait_for(lambda: portal.api.job(job_id)["cluster_stale"], "the job's cluster is stale")
    waits = portal.api.submit({**H100, "workers": 1})
    assert portal.api.job(job_id)["state"] == "running"
    kube_plane.start_part("kube-apiserver")

    job = portal.until_state(job_id, "succeeded")
    assert (job["attempt"], job["cluster_stale"]) == (1, False)
    portal.until_state(waits, "running", "succeeded")
