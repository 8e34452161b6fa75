"""The servers that the gateway has to get on with: the simulated cluster, and a real one.

With --kube the real one is a control plane that we start, and the gateway has the portal's rights on it and no more.
MUSTER_KUBE_SERVER names another instead: its https URL, MUSTER_KUBE_CA the file with its certificate authority (PEM)
and MUSTER_KUBE_TOKEN a bearer token that may make namespaces and all that the portal makes. It needs a ready node
whose containers run, or are said to run, for ten seconds at least.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.simulated.fleet import uniform
from tests.clusters_running import running_cluster
from tests.kube.plane import ControlPlane

SERVER = os.environ.get("MUSTER_KUBE_SERVER", "")
# Cases in which one kind of server differs from the other: test, server, reason.
# On the simulated one a NetworkPolicy holds no traffic (there is none), and the expressions of a
# ValidatingAdmissionPolicy are not evaluated: what these refuse is tried in tests/kube/test_guards.py.
_NO_RIGHT = "an account with the portal's rights may not write what spaces are made of: tests/kube/test_spaces.py does"
EXCEPTIONS = {
    ("test_an_object_of_a_space_is_stored_as_it_was_sent", "real"): _NO_RIGHT,
    ("test_a_policy_is_stored_as_it_was_sent", "real"): _NO_RIGHT,
    ("test_a_limit_range_fills_in_what_a_container_does_not_ask_for", "real"): _NO_RIGHT,
    ("test_a_namespace_that_is_not_there_is_not_found", "real"): (
        "an account with rights in single namespaces is told 403 of every other one, whether it is there or not"
    ),
}


@dataclass(frozen=True)
class Server:
    """A server under test: the way to it, a namespace that this test has for itself, and a node that is ready."""

    gateway: Gateway
    namespace: str
    node: str


class Site(Protocol):
    """A place with a server."""

    connection: Connection

    def open_namespace(self, name: str) -> None:
        """Make a namespace that the portal may work in."""

    def close_namespace(self, name: str) -> None:
        """Ask for its deletion."""


class OwnSite:
    """A server on which our token may make namespaces itself."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def open_namespace(self, name: str) -> None:
        """Make it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with Gateway(self.connection) as gateway:
            gateway.create("namespaces", "", body)

    def close_namespace(self, name: str) -> None:
        """Delete it."""
        with Gateway(self.connection) as gateway:
            uid = gateway.get("namespaces", "", name)["metadata"]["uid"]
            gateway.delete("namespaces", "", name, uid=uid, propagation="Background")


class PlaneSite:
    """A control plane of ours: its administrator makes namespaces, the portal may only work in them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.connection = Connection(server=plane.server, ca_data=plane.ca, token=plane.token)
        self._plane = plane

    def open_namespace(self, name: str) -> None:
        """Make it, with the portal's rights in it."""
        self._plane.open_namespace(name)

    def close_namespace(self, name: str) -> None:
        """Delete it."""
        self._plane.admin.delete("Namespace", "", name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the exceptions: one that is none any more fails. They are about our own control plane."""
    for item in items if not SERVER else ():
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        key = (item.originalname, str(item.callspec.params.get("site", "")))
        if key in EXCEPTIONS:
            item.add_marker(pytest.mark.xfail(reason=EXCEPTIONS[key], strict=True))


@pytest.fixture(scope="session", params=["simulated", pytest.param("real", marks=pytest.mark.kube)])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Each server in turn."""
    if request.param == "simulated":
        with running_cluster(uniform(nodes=3, gpus=8), clock=20, default_run_s=100_000) as cluster:
            yield OwnSite(Connection(server=cluster.url, token=cluster.token))
    elif SERVER:
        ca, token = Path(os.environ["MUSTER_KUBE_CA"]).read_text(), os.environ["MUSTER_KUBE_TOKEN"]
        yield OwnSite(Connection(server=SERVER, ca_data=ca, token=token))
    else:
        yield PlaneSite(request.getfixturevalue("kube_plane"))


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    with Gateway(site.connection) as gateway, _namespace(site) as namespace:
        nodes = gateway.list("nodes")["items"]
        ready = [node["metadata"]["name"] for node in nodes if _is_ready(node)]
        yield Server(gateway, namespace, ready[-1])


@contextmanager
def _namespace(site: Site) -> Iterator[str]:
    name = f"contract-{secrets.token_hex(4)}"
    site.open_namespace(name)
    try:
        yield name
    finally:
        site.close_namespace(name)


def _is_ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
