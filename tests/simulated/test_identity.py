"""Who asks, what is denied, and tokens that service accounts are given."""

import base64
import json
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from portal.core import clock
from tests.clusters_running import SimulatedCluster
from tests.simulated.conftest import Corner, pod

pytestmark = pytest.mark.timeout(60)

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MYSELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def account(corner: Corner) -> Iterator[str]:
    """The path of the tokens of a service account."""
    corner.create("serviceaccounts", {"metadata": {"name": "muster"}})
    yield corner.path("serviceaccounts", "muster/token")
    corner.cluster.control("PUT", "/simulated/rights", {"denied": []})
    corner.cluster.control("PUT", "/simulated/clock", {"ahead": 0})


def may(cluster: SimulatedCluster, **attributes: str) -> bool:
    code, answer = cluster.request("POST", ACCESS, {"spec": {"resourceAttributes": attributes}})
    assert code == 201
    return bool(answer["status"]["allowed"])


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


def test_nothing_is_denied_unless_a_test_says_so(corner: Corner) -> None:
    assert may(corner.cluster, verb="get")
    assert may(corner.cluster, verb="delete", group="batch", resource="jobs", namespace=corner.namespace)


def test_what_is_denied_is_denied_in_the_review_and_in_earnest(corner: Corner, account: str) -> None:
    denied = {"verb": "create", "resource": "pods", "namespace": corner.namespace}
    corner.cluster.control("PUT", "/simulated/rights", {"denied": [denied, {"resource": "pods/log"}]})

    assert not may(corner.cluster, verb="create", resource="pods", namespace=corner.namespace)
    assert may(corner.cluster, verb="create", resource="pods", namespace="elsewhere")
    assert may(corner.cluster, verb="list", resource="pods", namespace=corner.namespace)
    assert not may(corner.cluster, verb="get", resource="pods", subresource="log", namespace="any")
    code, answer = corner.cluster.request("POST", corner.path("pods"), pod("one"))
    assert code == 403
    assert (
        'pods is forbidden: User "simulated" cannot create resource "pods" in API group "" in the' in answer["message"]
    )
    assert corner.items("pods") == []


def test_a_review_without_a_question_is_refused(corner: Corner) -> None:
    assert corner.cluster.request("POST", ACCESS, {"spec": {}})[0] == 400


def test_an_issued_token_speaks_for_its_account(corner: Corner, account: str) -> None:
    code, answer = corner.cluster.request("POST", account, {"spec": {"expirationSeconds": 7200}})

    token = answer["status"]["token"]
    name = f"system:serviceaccount:{corner.namespace}:muster"
    assert code == 201
    assert (claims(token)["sub"], claims(token)["exp"] - claims(token)["iat"]) == (name, 7200)
    myself = corner.cluster.request("POST", MYSELF, {}, token=token)[1]
    assert myself["status"]["userInfo"]["username"] == name
    assert corner.cluster.request("GET", corner.path("pods"), token=token)[0] == 200
    assert corner.cluster.request("GET", "/simulated/state", token=token)[0] == 404


@pytest.mark.parametrize(
    "spoil", [lambda token: token[:-2] + "AA", lambda token: token.replace(".", ".x", 1), lambda _t: "a.b"]
)
def test_a_token_that_nobody_issued_is_unknown(corner: Corner, account: str, spoil: Any) -> None:
    token = corner.cluster.request("POST", account, {})[1]["status"]["token"]

    assert corner.cluster.request("GET", corner.path("pods"), token=spoil(token))[0] == 401


def test_the_token_of_a_deleted_account_is_unknown(corner: Corner, account: str) -> None:
    token = corner.cluster.request("POST", account, {})[1]["status"]["token"]
    corner.cluster.request("DELETE", corner.path("serviceaccounts", "muster"))

    assert corner.cluster.request("GET", corner.path("pods"), token=token)[0] == 401


@pytest.mark.parametrize("seconds", [60, 2**33, "long"])
def test_a_token_lives_ten_minutes_at_least(corner: Corner, account: str, seconds: object) -> None:
    code, answer = corner.cluster.request("POST", account, {"spec": {"expirationSeconds": seconds}})

    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.expirationSeconds")


def test_nobody_gets_a_token_of_an_account_that_is_not_there(corner: Corner) -> None:
    assert corner.cluster.request("POST", corner.path("serviceaccounts", "nobody/token"), {})[0] == 404


def test_the_server_tells_its_clock(corner: Corner, account: str) -> None:
    corner.cluster.control("PUT", "/simulated/clock", {"ahead": -30})
    connection = corner.cluster.connect()
    connection.request("GET", "/version")
    stamp = connection.getresponse().headers["Date"]
    connection.close()

    assert 25 < (clock.now() - parsedate_to_datetime(stamp)).total_seconds() < 40
