"""The crash matrix on a real control plane: with gates, and with ranks that are pinned as they are born."""

from collections.abc import Iterator

import pytest

from clusters.manifests import names, rights
from clusters.manifests.adapters import born_pinned
from tests.crash import matrix
from tests.crash.matrix import Fate, Point
from tests.crash.site import Door, Site, running_site
from tests.kube.fleet import LEVELS, TEAMS
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def running(kube_plane: ControlPlane) -> Iterator[Site]:
    """A portal that knows the control plane by the address of a proxy before it."""
    door = Door(server=kube_plane.server, token=kube_plane.token, ca=kube_plane.ca, levels=LEVELS)
    with running_site(door, len(kube_plane.admin.items("Node"))) as site:
        yield site


@pytest.fixture(scope="module")
def policy(running: Site, kube_plane: ControlPlane) -> Iterator[None]:
    """The policy that pins ranks at their creation, and a portal that counts on it."""
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.create(body)
    running.portal.rows("UPDATE clusters_cluster SET dispatch = 'born_pinned' RETURNING id")
    yield
    running.portal.rows("UPDATE clusters_cluster SET dispatch = 'gates' RETURNING id")
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.delete(body["kind"], "", born_pinned.NAME)


@pytest.fixture(scope="module")
def groups(running: Site, kube_plane: ControlPlane) -> Iterator[None]:
    """The right to make PodGroups, and a portal that counts on it."""
    granted = rights.for_groups(TEAMS)
    for body in granted:
        kube_plane.admin.create(body)
    running.portal.rows("UPDATE clusters_cluster SET has_pod_groups = true RETURNING id")
    yield
    running.portal.rows("UPDATE clusters_cluster SET has_pod_groups = false RETURNING id")
    for body in granted:
        kube_plane.admin.delete(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])


@pytest.mark.parametrize("case", matrix.MATRIX, ids=matrix.title)
def test_a_worker_killed_at_any_request_leaves_the_gang_whole_or_gone(site: Site, case: tuple[Point, Fate]) -> None:
    job = matrix.kill_at(site, case)

    assert len(job["attempts"]) == 1


@pytest.mark.parametrize("point", [matrix.CREATE, matrix.OPEN, matrix.LAST_RELEASE], ids=lambda point: point.name)
def test_a_worker_that_wakes_up_late_changes_nothing(site: Site, point: Point) -> None:
    job = matrix.pause_at(site, point)

    assert len(job["attempts"]) == 1


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("case", matrix.BORN_PINNED, ids=matrix.title)
def test_a_gang_that_is_born_pinned_is_whole_or_gone_as_well(site: Site, case: tuple[Point, Fate]) -> None:
    job = matrix.kill_at(site, case)

    assert len(job["attempts"]) == 1


@pytest.mark.kubernetes("1.37")
@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.value)
def test_a_gang_that_its_cluster_binds_is_whole_or_gone_when_its_group_is_lost(site: Site, fate: Fate) -> None:
    job = matrix.kill_at(site, (matrix.GROUP, fate))

    assert len(job["attempts"]) == 1
