"""A portal of real processes in front of a real control plane that was registered the way an administrator does it."""

from collections.abc import Iterator

import pytest

from tests.contract.objects import wait_for
from tests.e2e.portal import RunningPortal, running_portal
from tests.kube.admin import Json
from tests.kube.fleet import LEVELS, TEAMS
from tests.kube.plane import ControlPlane

ENDED = ("succeeded", "failed", "cancelled")
# Pods that a quota refuses are waited for no longer than this.
SETTINGS = {"MUSTER_GATHER_S": "6"}


@pytest.fixture(autouse=True)
def _leave_room(request: pytest.FixtureRequest) -> Iterator[None]:
    """Clear the control plane after each test that used it: the next one needs the nodes."""
    yield
    if "kube_plane" in request.fixturenames:
        plane: ControlPlane = request.getfixturevalue("kube_plane")
        for team in TEAMS:
            for kind in ("Deployment", "Job", "Pod"):
                plane.admin.delete_all(kind, team)
        wait_for(lambda: not _working(plane), "no pod is left", timeout_s=60)


@pytest.fixture(scope="session")
def started(kube_plane: ControlPlane) -> Iterator[RunningPortal]:
    """The portal, once it knows the cluster's nodes."""
    with running_portal({}, settings=SETTINGS) as portal:
        register(portal, kube_plane)
        yield portal
        assert portal.doctor() == []


@pytest.fixture
def portal(started: RunningPortal, kube_plane: ControlPlane) -> Iterator[RunningPortal]:
    """The portal with no job under way; afterwards nothing is held and nothing of a run still stands."""
    yield started
    status, page = started.api.ask("GET", "jobs/?team=vision")
    assert status == 200, page
    alive = [job["id"] for job in page["results"] if job["state"] not in ENDED]
    for job_id in alive:
        started.api.ask("POST", f"jobs/{job_id}/cancel/")
    for job_id in alive:
        started.until_state(job_id, *ENDED)
    assert started.held() == 0
    started.wait_for(lambda: not _working(kube_plane), "no pod is left at work")


def register(portal: RunningPortal, plane: ControlPlane) -> None:
    """What an administrator does, until the portal knows the nodes."""
    levels = [{"name": name, "label_key": key} for name, key in LEVELS]
    body = {"name": plane.name, "kubeconfig": plane.kubeconfig.read_text(), "levels": levels}
    status, answer = portal.api_of("admin").ask("POST", "clusters/", body)
    assert status == 201, answer
    nodes = len(plane.admin.items("Node"))
    portal.wait_for(lambda: _cluster(portal, plane)["nodes_ready"] == nodes, "the portal sees the nodes")


def _cluster(portal: RunningPortal, plane: ControlPlane) -> Json:
    status, answer = portal.api.ask("GET", f"clusters/{plane.name}/")
    assert status == 200, answer
    found: Json = answer
    return found


def _working(plane: ControlPlane) -> list[str]:
    pods = plane.admin.items("Pod", labels="muster.internal/run")
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
