"""Nodes of real Kubernetes that fail under a gang."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.portal import RunningPortal
from tests.kube.admin import Json, path_of
from tests.kube.plane import ControlPlane
from tests.kube.test_dispatch import H100, LONG

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

MERGE = "application/merge-patch+json"
LABEL = "muster.example/silent"


def running_gang(portal: RunningPortal) -> tuple[str, str]:
    """A gang of two whole nodes, and the node of its second rank."""
    job_id = portal.api.submit({**H100, "workers": 2, "backoff_limit": 0, **LONG})
    job = portal.until_state(job_id, "running")
    return job_id, job["placement"]["nodes"][1]["node"]


def again(portal: RunningPortal, job_id: str) -> dict[str, Any]:
    """The job once its second attempt runs."""

    def second() -> dict[str, Any] | None:
        job = portal.api.job(job_id)
        return job if (job["state"], job["attempt"]) == ("running", 2) else None

    found: dict[str, Any] = portal.wait_for(second, "the second attempt runs", timeout_s=120)
    return found


def incident_of(portal: RunningPortal, job_id: str) -> dict[str, Any]:
    """The one incident of a run."""
    status, page = portal.api.ask("GET", "incidents/")
    assert status == 200, page
    (found,) = [each for each in page["results"] if each["run"] == job_id]
    return dict(found)


@contextmanager
def silent(plane: ControlPlane, name: str) -> Iterator[None]:
    """The kubelet says nothing any more: what the node controller writes then, and nobody heals."""
    path = f"{path_of('Node')}/{name}"
    status, answer = plane.admin.request("PATCH", path, {"metadata": {"labels": {LABEL: "yes"}}}, kind=MERGE)
    assert status == 200, answer
    conditions = [
        {**each, "status": "Unknown", "reason": "NodeStatusUnknown"} if each["type"] == "Ready" else each
        for each in answer["status"]["conditions"]
    ]
    body = {"status": {"conditions": conditions}}
    status, answer = plane.admin.request("PATCH", f"{path}/status", body, kind=MERGE)
    assert status == 200, answer
    try:
        yield
    finally:
        plane.admin.request("PATCH", path, {"metadata": {"labels": {LABEL: None}}}, kind=MERGE)


def test_a_node_that_falls_silent_is_seen_within_seconds_and_its_gang_runs_elsewhere(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    job_id, lost = running_gang(portal)

    with silent(kube_plane, lost):
        began = time.monotonic()
        portal.wait_for(lambda: portal.api.job(job_id)["state"] != "running", "the gang is being stopped")
        assert time.monotonic() - began < 5
        job = again(portal, job_id)

    assert lost not in [rank["node"] for rank in job["placement"]["nodes"]]
    assert [each["node"] for each in job["exclusions"]] == [lost]
    incident = incident_of(portal, job_id)
    assert (incident["node"], incident["kind"], incident["gpus"]) == (lost, "not_ready", 16)
    assert incident["running_again_at"]


def test_a_node_that_is_deleted_and_made_anew_under_its_name_is_another_node(
    portal: RunningPortal, kube_plane: ControlPlane
) -> None:
    job_id, lost = running_gang(portal)
    (body,) = [node for node in kube_plane.admin.items("Node") if node["metadata"]["name"] == lost]

    kube_plane.admin.delete("Node", "", lost)
    kube_plane.admin.create(_anew(body))
    job = again(portal, job_id)

    assert lost not in [rank["node"] for rank in job["placement"]["nodes"]]
    assert incident_of(portal, job_id)["kind"] in ("gone", "replaced")
    assert portal.held() == 16


def _anew(body: Json) -> Json:
    metadata = {key: body["metadata"][key] for key in ("name", "labels")}
    taints = [each for each in body["spec"].get("taints") or () if not each["key"].startswith("node.kubernetes.io/")]
    status = {key: body["status"][key] for key in ("capacity", "allocatable", "nodeInfo", "addresses")}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": status}
