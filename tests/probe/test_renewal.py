"""A token gets a successor before it ends, from the cluster itself."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import structlog
from django.db import connection

from clusters.k8s.gateway import Gateway
from clusters.models import Cluster
from clusters.probe import access
from clusters.services.findings import store_renewed_token
from portal.core import clock
from portal.core.models import AuditEvent
from tests.clusters_running import SimulatedCluster
from tests.factories import make_cluster
from tests.probe.conftest import found, round_of
from tests.probe.tokens import living

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(60)]
ACCOUNTS = "/api/v1/namespaces/vision/serviceaccounts"


@pytest.fixture
def row(simulated: SimulatedCluster) -> Iterator[Cluster]:
    """A cluster whose account has a token for ten minutes."""
    assert simulated.request("POST", ACCOUNTS, {"metadata": {"name": "muster"}})[0] == 201
    given = simulated.request("POST", f"{ACCOUNTS}/muster/token", {"spec": {"expirationSeconds": 600}})[1]
    yield make_cluster("north", server=simulated.url, token=given["status"]["token"])
    simulated.request("DELETE", f"{ACCOUNTS}/muster")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the ten minutes have passed, as far as we know."""
    now = clock.now() + timedelta(minutes=8)
    monkeypatch.setattr(clock, "now", lambda: now)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


def test_a_token_in_its_last_third_is_renewed_and_the_new_one_works(
    row: Cluster, late: None, logged: list[Any]
) -> None:
    round_of(row).renew_token()

    kept = Cluster.objects.get()
    assert kept.token != row.token
    assert kept.version == row.version
    life = access.life_of(kept.token)
    assert life is not None
    assert life.seconds == 600
    with Gateway(kept) as gateway:
        assert gateway.user_name() == "system:serviceaccount:vision:muster"
    event = AuditEvent.objects.get()
    assert (event.action, event.actor, list(event.after)) == ("cluster.token_renewed", "muster", ["expires_at"])
    spoken = repr([event.before, event.after, logged])
    assert not any(part in spoken for part in kept.token.split("."))


def test_it_is_stored_encrypted(row: Cluster, late: None) -> None:
    round_of(row).renew_token()

    with connection.cursor() as cursor:
        cursor.execute("SELECT token FROM clusters_cluster")
        (stored,) = cursor.fetchone()
    assert Cluster.objects.get().token not in stored


def test_a_young_token_is_left_alone(row: Cluster) -> None:
    round_of(row).renew_token()

    assert Cluster.objects.get().token == row.token


def test_without_the_right_there_is_only_the_warning(simulated: SimulatedCluster, row: Cluster, late: None) -> None:
    simulated.control("PUT", "/simulated/rights", {"denied": [{"resource": "serviceaccounts/token"}]})
    probe = round_of(row)

    probe.renew_token()
    probe.whole()

    assert Cluster.objects.get().token == row.token
    severity, numbers = found(row)["token"]
    assert (severity, numbers["is"], numbers["renews"]) == ("warning", "short", False)
    assert numbers["user"] == "system:serviceaccount:vision:muster"
    assert not AuditEvent.objects.exists()


def test_with_the_right_there_is_no_warning(row: Cluster) -> None:
    round_of(row).whole()

    assert found(row)["token"][1]["renews"] is True
    assert found(row)["token"][0] == "ok"


def test_a_new_kubeconfig_wins_over_a_renewal_on_its_way(row: Cluster, late: None) -> None:
    Cluster.objects.update(token="given by hand")

    round_of(row).renew_token()

    assert Cluster.objects.get().token == "given by hand"
    Cluster.objects.update(version=row.version + 1)
    assert not store_renewed_token(cluster=row, token="renewed", expires_at="")
    assert Cluster.objects.get().token == "given by hand"
    assert not AuditEvent.objects.exists()


def test_a_token_of_no_service_account_is_not_renewed(simulated: SimulatedCluster, late: None) -> None:
    now = clock.now()
    row = make_cluster(
        "north", server=simulated.url, token=living(now - timedelta(hours=2), now + timedelta(hours=0.1))
    )

    with pytest.raises(Exception, match="Unauthorized"):
        round_of(row).renew_token()

    assert Cluster.objects.get().token == row.token
