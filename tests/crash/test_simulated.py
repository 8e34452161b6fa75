"""The crash matrix on the simulated cluster."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from django.conf import settings
from pgmq.base import PGMQConfig

from clusters.simulated.fleet import uniform, with_teams
from portal.env import libpq_environment
from tests.clusters_running import running_cluster
from tests.crash import matrix
from tests.crash.matrix import Fate, Point
from tests.crash.site import Door, Site, running_site
from tests.e2e.portal import DATABASE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("crash"), pytest.mark.timeout(180)]

NODES = 4
LEVELS = (("rack", "topology.muster.internal/rack"),)


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    """Four nodes in one rack, ten times as fast as the world."""
    fleet = with_teams({**uniform(nodes=NODES, gpus=8, per_rack=NODES), "name": "held"})
    with running_cluster(fleet, clock=10) as cluster:
        door = Door(server=cluster.url, token=cluster.token, levels=LEVELS, short_s=20)
        with running_site(door, NODES) as site:
            yield site


@pytest.mark.parametrize("case", matrix.MATRIX, ids=matrix.title)
def test_a_worker_killed_at_any_request_leaves_the_gang_whole_or_gone(site: Site, case: tuple[Point, Fate]) -> None:
    job = matrix.kill_at(site, case)

    # Nothing went wrong on the cluster, so no second attempt was needed.
    assert len(job["attempts"]) == 1


@pytest.mark.parametrize("point", [matrix.CREATE, matrix.OPEN, matrix.LAST_RELEASE], ids=lambda point: point.name)
def test_a_worker_that_wakes_up_late_changes_nothing(site: Site, point: Point) -> None:
    job = matrix.pause_at(site, point)

    assert len(job["attempts"]) == 1


# What a paused process may leave open, neither written nor undone.
WRITES_LEASE = (
    "INSERT INTO core_lease (name, token, holder) VALUES ('cycle', 1, 'paused')"
    " ON CONFLICT (name) DO UPDATE SET token = core_lease.token"
)
POLLS = "SELECT pgmq.read('reconcile', 10, 1)"


@pytest.mark.parametrize(
    ("statement", "is_broker"),
    [(WRITES_LEASE, False), (POLLS, True)],
    ids=["a cycle that writes", "a worker that polls"],
)
def test_a_process_paused_in_a_transaction_holds_up_the_others_for_a_moment_only(
    site: Site, statement: str, is_broker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in libpq_environment(settings.DATABASES["default"]).items():
        monkeypatch.setenv(name, value)
    own = site.portal.postgres.dsn(DATABASE)
    # The broker's client makes its connection string itself.
    dsn = PGMQConfig(conn_string=own).dsn if is_broker else own
    options = {} if is_broker else {"options": settings.DATABASES["default"]["OPTIONS"]["options"]}
    with closing(psycopg.connect(dsn, **options)) as paused:
        paused.execute(statement)
        site.portal.kill("worker")
        site.portal.launch("worker")

        run = matrix.submit(site, run_s=site.short_s)

        site.portal.until_state(run, "running", "succeeded", timeout_s=50)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            paused.execute("SELECT 1")
