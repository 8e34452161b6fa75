"""What else fails around a gang that starts or ends: the database, the mirror, the token, the clock, the past."""

from collections.abc import Iterator

import pytest

from clusters.simulated.fleet import uniform, with_teams
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.crash import matrix
from tests.crash.matrix import RANKS, Point
from tests.crash.proxy import Moment, Weather
from tests.crash.site import Door, Site, judged, running_site

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("crash"), pytest.mark.timeout(180)]

NODES = 4
LEVELS = (("rack", "topology.muster.internal/rack"),)
START = (matrix.CREATE, matrix.OPEN, matrix.FIRST_RELEASE, matrix.LAST_RELEASE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimulatedCluster]:
    """Four nodes in one rack, ten times as fast as the world."""
    fleet = with_teams({**uniform(nodes=NODES, gpus=8, per_rack=NODES), "name": "held"})
    with running_cluster(fleet, clock=10) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def running(cluster: SimulatedCluster) -> Iterator[Site]:
    """A portal whose database keeps what it said to have written."""
    door = Door(server=cluster.url, token=cluster.token, levels=LEVELS, short_s=20)
    with running_site(door, NODES, durable=True) as site:
        yield site


@pytest.fixture(autouse=True)
def _fair_weather(site: Site, cluster: SimulatedCluster) -> Iterator[None]:
    yield
    site.proxy.turn(Weather.FAIR)
    cluster.control("PUT", "/simulated/clock", {"ahead": 0})


@pytest.mark.parametrize("point", START, ids=lambda point: point.name)
def test_a_database_that_dies_while_a_start_is_on_its_way_loses_nothing(site: Site, point: Point) -> None:
    with judged(site) as violations:
        held = site.proxy.hold(point.method, point.path, at=Moment.REPLY, skip=point.skip)
        run = matrix.submit(site, run_s=site.short_s)
        held.wait()
        site.portal.crash_postgres()
        held.deliver()
        job = site.portal.until_state(run, "succeeded")
    assert violations == []
    assert len(job["attempts"]) == 1
    assert site.portal.held() == 0


def test_a_database_that_dies_while_a_gang_is_stopped_frees_it_once(site: Site) -> None:
    run = matrix.submit(site, run_s=matrix.LONG_S)
    site.portal.until_state(run, "running")
    with judged(site) as violations:
        held = site.proxy.hold(matrix.DELETE.method, matrix.DELETE.path, at=Moment.REPLY)
        site.portal.api.act(run, "cancel")
        held.wait()
        site.portal.crash_postgres()
        held.deliver()
        site.portal.until_state(run, "cancelled")
    assert violations == []
    assert site.bound(run) == []
    assert site.portal.held() == 0


@pytest.mark.parametrize("point", START, ids=lambda point: point.name)
def test_a_mirror_killed_while_a_gang_starts_is_replaced(site: Site, point: Point) -> None:
    with judged(site) as violations:
        held = site.proxy.hold(point.method, point.path, at=Moment.REPLY, skip=point.skip)
        run = matrix.submit(site, run_s=site.short_s)
        held.wait()
        site.portal.kill("watch")
        held.deliver()
        site.portal.launch("watch")
        job = site.portal.until_state(run, "succeeded")
    assert violations == []
    assert len(job["attempts"]) == 1


def test_a_token_that_is_refused_freezes_what_runs_and_says_so(site: Site) -> None:
    run = matrix.submit(site, run_s=matrix.LONG_S)
    site.portal.until_state(run, "running")
    site.proxy.turn(Weather.STRANGER)
    site.portal.wait_for(lambda: site.portal.api.job(run)["cluster_stale"], "the cluster is stale")
    waits = matrix.submit(site, run_s=site.short_s)
    told = site.portal.wait_for(lambda: _error(site), "the cluster's page says why")

    assert "does not accept the portal's token" in told
    assert site.portal.api.job(run)["state"] == "running"
    assert site.portal.api.job(waits)["state"] == "queued"
    assert len(site.bound(run)) == RANKS

    site.proxy.turn(Weather.FAIR)
    site.portal.until_state(waits, "succeeded")
    assert site.portal.api.job(run)["state"] == "running"


@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_a_cluster_whose_clock_is_wrong_runs_gangs_all_the_same(
    site: Site, cluster: SimulatedCluster, ahead_s: int
) -> None:
    cluster.control("PUT", "/simulated/clock", {"ahead": ahead_s})
    with judged(site) as violations:
        run = matrix.submit(site, run_s=site.short_s)
        job = site.portal.until_state(run, "succeeded")
    assert violations == []
    assert len(job["attempts"]) == 1


def test_what_happened_while_the_past_was_forgotten_is_seen(site: Site, cluster: SimulatedCluster) -> None:
    run = matrix.submit(site, run_s=site.short_s)
    site.portal.until_state(run, "running", "succeeded")
    site.proxy.turn(Weather.OUTAGE)
    cluster.wait_for(lambda: site.bound(run) == [], "the gang is over")
    cluster.control("POST", "/simulated/compact")
    site.proxy.turn(Weather.FAIR)

    job = site.portal.until_state(run, "succeeded")
    assert len(job["attempts"]) == 1
    assert site.portal.held() == 0


def _error(site: Site) -> str:
    status, answer = site.portal.api.ask("GET", "clusters/held/")
    assert status == 200, answer
    return str(answer["last_error"])
