"""A portal of real processes, a cluster, and between them a proxy that can hold any request of the driver."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from jobs.replay.follower import Follower
from jobs.simulator.invariants import Referee, Violation
from tests.crash.proxy import HoldingProxy, running_proxy
from tests.e2e.portal import RunningPortal, running_portal

NAMESPACE = "team-vision"
DOMAIN = "muster.internal"
ENDED = ("succeeded", "failed", "cancelled")
# What a dead worker held is taken over after six seconds; four seconds of silence make a cluster stale.
SETTINGS = {"MUSTER_PASS_S": "1"}


@dataclass(frozen=True)
class Door:
    """How the portal comes to a cluster."""

    server: str
    token: str
    ca: str = ""
    levels: Sequence[tuple[str, str]] = ()
    # How long a run takes there that nobody shall wait for, by the cluster's own clock.
    short_s: int = 3


@dataclass
class Site:
    """`truth` talks to the cluster itself, `proxy` is what the portal talks to."""

    portal: RunningPortal
    proxy: HoldingProxy
    truth: Gateway
    short_s: int

    def objects(self, kind: str, run: str) -> list[Any]:
        """What the cluster has of a run."""
        listed = self.truth.list(kind, NAMESPACE, labels=f"{DOMAIN}/run={run}")
        return list(listed["items"])

    def bound(self, run: str) -> list[str]:
        """Where the pods of a run that are not over were bound."""
        alive = [pod for pod in self.objects("pods", run) if pod["status"]["phase"] in ("Pending", "Running")]
        return sorted(pod["spec"]["nodeName"] for pod in alive if pod["spec"].get("nodeName"))

    def clear(self) -> None:
        """Cancel what still works and wait until nothing is held."""
        status, page = self.portal.api.ask("GET", "jobs/?team=vision")
        assert status == 200, page
        alive = [job["id"] for job in page["results"] if job["state"] not in ENDED]
        for job_id in alive:
            self.portal.api.ask("POST", f"jobs/{job_id}/cancel/")
        for job_id in alive:
            self.portal.until_state(job_id, *ENDED)
        assert self.portal.held() == 0


@contextmanager
def running_site(door: Door, nodes: int, *, durable: bool = False) -> Iterator[Site]:
    """Register the cluster by the address of the proxy; wait until its nodes are known."""
    connection = Connection(server=door.server, ca_data=door.ca, token=door.token)
    with (
        running_proxy(door.server, door.ca) as proxy,
        running_portal({}, settings=SETTINGS, durable=durable) as portal,
        Gateway(connection) as truth,
    ):
        levels = [{"name": name, "label_key": key} for name, key in door.levels]
        body = {"name": "held", "kubeconfig": _kubeconfig(proxy.url, door.token), "levels": levels}
        status, answer = portal.api_of("admin").ask("POST", "clusters/", body)
        assert status == 201, answer
        portal.wait_for(lambda: _nodes_ready(portal) == nodes, "the portal sees the nodes")
        yield Site(portal, proxy, truth, door.short_s)
        assert portal.doctor() == []


@contextmanager
def judged(site: Site) -> Iterator[list[Violation]]:
    """Judge every watch event of the cluster meanwhile; the list is complete after the block."""
    follower = Follower(site.truth, Referee(domain=DOMAIN, bind_s=30.0))
    follower.start()
    found: list[Violation] = []
    try:
        yield found
    finally:
        follower.stop()
        found += follower.violations


def _nodes_ready(portal: RunningPortal) -> int:
    status, answer = portal.api.ask("GET", "clusters/held/")
    assert status == 200, answer
    return int(answer["nodes_ready"])


def _kubeconfig(server: str, token: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "held",
            "clusters": [{"name": "held", "cluster": {"server": server}}],
            "users": [{"name": "muster", "user": {"token": token}}],
            "contexts": [{"name": "held", "context": {"cluster": "held", "user": "muster"}}],
        }
    )
