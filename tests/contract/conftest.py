"""The servers that the gateway has to get on with: the simulated cluster, and a real one where it is named.

MUSTER_KUBE_SERVER is the https URL of a real one, MUSTER_KUBE_CA the file with its certificate authority (PEM) and
MUSTER_KUBE_TOKEN a bearer token that may make namespaces and all that the portal makes. It needs a ready node whose
containers run, or are said to run, for ten seconds at least.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.simulated.fleet import uniform
from tests.clusters_running import running_cluster

SERVER = os.environ.get("MUSTER_KUBE_SERVER", "")


@dataclass(frozen=True)
class Server:
    """A server under test: the way to it, a namespace that this test has for itself, and a node that is ready."""

    gateway: Gateway
    namespace: str
    node: str


@pytest.fixture(scope="session", params=["simulated", *(["real"] if SERVER else [])])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """The way to each server in turn."""
    if request.param == "real":
        yield Connection(
            server=SERVER,
            ca_data=Path(os.environ["MUSTER_KUBE_CA"]).read_text(),
            token=os.environ["MUSTER_KUBE_TOKEN"],
        )
        return
    with running_cluster(uniform(nodes=3, gpus=8), clock=20, default_run_s=100_000) as cluster:
        yield Connection(server=cluster.url, token=cluster.token)


@pytest.fixture
def server(connection: Connection) -> Iterator[Server]:
    with Gateway(connection) as gateway, _namespace(gateway) as namespace:
        nodes = gateway.list("nodes")["items"]
        ready = [node["metadata"]["name"] for node in nodes if _is_ready(node)]
        yield Server(gateway, namespace, ready[-1])


@contextmanager
def _namespace(gateway: Gateway) -> Iterator[str]:
    name = f"contract-{secrets.token_hex(4)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    uid = gateway.create("namespaces", "", body)["metadata"]["uid"]
    try:
        yield name
    finally:
        gateway.delete("namespaces", "", name, uid=uid, propagation="Background")


def _is_ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
