"""What a server says about itself and about us, whatever the server."""

from email.utils import parsedate_to_datetime

import pytest

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.k8s.values import NotFound, RightMissing
from clusters.manifests.rights import IN_TEAMS, Act
from portal.core import clock
from tests.contract.conftest import Server


def test_the_server_tells_its_time(server: Server) -> None:
    told = parsedate_to_datetime(server.gateway.date())

    assert abs((clock.now() - told).total_seconds()) < 5


def test_the_server_is_ready_and_one_that_is_not_there_is_not(server: Server) -> None:
    assert server.gateway.is_ready()
    with Gateway(Connection(server="https://127.0.0.1:1")) as nowhere:
        assert not nowhere.is_ready()


def test_the_server_knows_the_groups_that_the_portal_uses_and_not_every_one(server: Server) -> None:
    known = server.gateway.group_versions()

    assert {"batch/v1", "apps/v1", "authorization.k8s.io/v1", "authentication.k8s.io/v1"} <= known
    assert "example.com/v1" not in known
    assert {"jobs", "jobs/status"} <= server.gateway.kinds("batch/v1")
    assert server.gateway.kinds("example.com/v1") == frozenset()


def test_our_account_has_a_name_and_the_rights_that_were_granted(server: Server) -> None:
    acts = [act for right in IN_TEAMS for act in right.acts(server.namespace)]

    assert server.gateway.user_name()
    assert all(server.gateway.may(act.attributes()) for act in acts)


def test_a_token_is_given_of_an_account_that_exists_to_whoever_may_ask(server: Server) -> None:
    if not server.gateway.may(Act(server.namespace, "", "serviceaccounts/token", "create").attributes()):
        with pytest.raises(RightMissing):
            server.gateway.request_token(server.namespace, "default", seconds=3600)
        return
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    server.gateway.create("serviceaccounts", server.namespace, body)

    given = server.gateway.request_token(server.namespace, "robot", seconds=3600)

    assert len(given["token"].split(".")) == 3
    assert given["expirationTimestamp"].endswith("Z")
    with pytest.raises(NotFound):
        server.gateway.request_token(server.namespace, "nobody", seconds=3600)
