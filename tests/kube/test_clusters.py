"""One portal and two real clusters, of which one goes away: nothing is lost or doubled, and the other goes on."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.manifests import names
from jobs.replay.follower import Follower
from jobs.simulator.invariants import Referee, Violation
from tests.e2e.portal import RunningPortal, running_portal
from tests.kube.conftest import register
from tests.kube.plane import ControlPlane, running_plane
from tests.kube.test_dispatch import H100, objects

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

API = "kube-apiserver"
# Six pairs of nodes: four fit the first cluster, two the second.
GANGS = 6
# Longer than this a gang must not be bound in part, the time included for which its cluster is away.
BIND_S = 60.0


@dataclass(frozen=True)
class Site:
    """The portal, the cluster that stays and the one that goes."""

    portal: RunningPortal
    stays: ControlPlane
    goes: ControlPlane

    @property
    def planes(self) -> Sequence[ControlPlane]:
        return (self.stays, self.goes)

    def submit(self, workers: int, run_s: int) -> str:
        """Whole H100 nodes."""
        return self.portal.api.submit({**H100, "workers": workers, "env": {"SIM_RUN_S": str(run_s)}})

    def cluster_of(self, job_id: str) -> str:
        attempts: list[dict[str, Any]] = self.portal.api.job(job_id)["attempts"]
        return str(attempts[-1]["cluster"]) if attempts else ""

    def held_on(self, plane: ControlPlane) -> int:
        """GPUs that the ledger holds there."""
        rows = self.portal.rows(
            "SELECT c.name, sum(a.gpus) FROM jobs_allocation a JOIN clusters_node n ON n.id = a.node_id"
            " JOIN clusters_cluster c ON c.id = n.cluster_id WHERE a.released_at IS NULL GROUP BY c.name"
        )
        return int(dict(rows).get(plane.name, 0))

    def is_stale(self, plane: ControlPlane) -> bool:
        status, answer = self.portal.api.ask("GET", f"clusters/{plane.name}/")
        assert status == 200, answer
        return bool(answer["state"] == "stale")

    def until_all(self, jobs: Sequence[str], *states: str) -> list[dict[str, Any]]:
        return [self.portal.until_state(job_id, *states, timeout_s=120) for job_id in jobs]


@pytest.fixture(scope="module")
def site(kube_plane: ControlPlane) -> Iterator[Site]:
    """The control plane of all tests, and one of eight nodes beside it."""
    with running_plane("kube2", version=kube_plane.version, nodes=8) as second, running_portal({}) as portal:
        for plane in (kube_plane, second):
            register(portal, plane)
        yield Site(portal, kube_plane, second)
        assert portal.doctor() == []


@contextmanager
def judged(site: Site) -> Iterator[list[Violation]]:
    """Judge every watch event of both clusters meanwhile; the list is complete after the block."""
    found: list[Violation] = []
    with ExitStack() as stack:
        followers = []
        for plane in site.planes:
            connection = Connection(server=plane.server, ca_data=plane.ca, token=plane.token)
            gateway = stack.enter_context(Gateway(connection))
            follower = Follower(gateway, Referee(domain=names.DOMAIN, bind_s=BIND_S))
            follower.start()
            followers.append(follower)
        try:
            yield found
        finally:
            for follower in followers:
                follower.stop()
                found += follower.violations


def assert_nothing_doubled(site: Site, jobs: Sequence[str]) -> None:
    """Each run has its one Job, on the one cluster of its attempt."""
    for job_id in jobs:
        where = [plane.name for plane in site.planes for _job in objects(plane, "Job", job_id)]
        assert where == [site.cluster_of(job_id)], job_id


def test_a_cluster_that_answers_nothing_holds_up_no_other_and_goes_on_when_it_is_back(site: Site) -> None:
    with judged(site) as violations:
        jobs = [site.submit(2, 25) for _gang in range(GANGS)]
        site.until_all(jobs, "running", "succeeded")
        homes = {job_id: site.cluster_of(job_id) for job_id in jobs}
        assert set(homes.values()) == {site.stays.name, site.goes.name}
        there = [job_id for job_id, home in homes.items() if home == site.goes.name]
        held = site.held_on(site.goes)
        assert held == 16 * len(there)

        site.goes.freeze_part(API)
        try:
            site.portal.wait_for(lambda: site.is_stale(site.goes), "the cluster is stale")
            # Both have one node left: what comes now goes where somebody answers, and runs to its end.
            quick = site.submit(1, 2)
            site.portal.until_state(quick, "succeeded", timeout_s=30)
            assert site.cluster_of(quick) == site.stays.name
            assert {site.portal.api.job(job_id)["state"] for job_id in there} == {"running"}
            assert site.held_on(site.goes) == held
        finally:
            site.goes.thaw_part(API)

        site.portal.wait_for(lambda: not site.is_stale(site.goes), "the cluster is heard again")
        ended = site.until_all(jobs, "succeeded")
        assert [job["attempt"] for job in ended] == [1] * GANGS

    assert violations == []
    assert_nothing_doubled(site, [*jobs, quick])
    assert site.portal.held() == 0


def test_a_cluster_whose_server_is_killed_amid_the_starts_loses_and_doubles_nothing(site: Site) -> None:
    with judged(site) as violations:
        jobs = [site.submit(2, 10) for _gang in range(GANGS)]
        site.portal.wait_for(lambda: site.held_on(site.goes), "a gang has its place on the cluster")
        site.goes.kill_part(API)
        site.portal.wait_for(lambda: site.is_stale(site.goes), "the cluster is stale")
        here = [job_id for job_id in jobs if site.cluster_of(job_id) == site.stays.name]
        assert here
        site.until_all(here, "succeeded")
        assert site.held_on(site.goes) > 0  # nobody has seen these end

        site.goes.start_part(API)

        site.until_all(jobs, "succeeded")

    assert violations == []
    assert_nothing_doubled(site, jobs)
    assert site.portal.held() == 0
