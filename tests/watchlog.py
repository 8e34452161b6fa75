"""What a simulated cluster did, by its own watches, and what of it broke an invariant."""

from typing import Any

from clusters.k8s.gateway import Gateway
from clusters.models import Cluster
from jobs.replay.follower import Follower
from jobs.simulator.invariants import Referee, Violation
from tests.clusters_running import SimulatedCluster

Event = tuple[str, str, Any]


class WatchLog:
    """Starts reading at once; `events` grows until `stop`. `bind_s`: how long a gang may be bound in part."""

    def __init__(self, cluster: SimulatedCluster, *, domain: str = "muster.internal", bind_s: float = 30.0) -> None:
        self.events: list[Event] = []
        self._told = 0
        gateway = Gateway(Cluster(server=cluster.url, token=cluster.token))
        self._follower = Follower(gateway, Referee(domain=domain, bind_s=bind_s), note=self._note)
        self._follower.start()

    def stop(self) -> list[Violation]:
        """Judge what came, stop reading, return what was broken."""
        self._follower.stop()
        return self._follower.violations

    def take(self) -> list[Violation]:
        """Return what was found broken since this was asked last, and read on."""
        found = self._follower.violations[self._told :]
        self._told += len(found)
        return found

    def _note(self, kind: str, change: str, body: Any) -> None:
        self.events.append((kind, change, body))
