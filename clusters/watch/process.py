"""The watch process: one loop for each enabled cluster, and a sign of life."""

import gc
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from clusters.k8s.values import GatewayError
from clusters.models import Cluster, ResourceFlavor
from clusters.watch.hints import Hints
from clusters.watch.inventory import Catalogue, FlavorSelector
from clusters.watch.loop import ClusterLoop
from portal.core import heartbeat

log = structlog.get_logger(__name__)

LOOK_S = 2.0
BEAT_S = 5.0
STOP_S = 1.5
COLLECT_AFTER = 100_000  # new containers: more than a page of a list makes


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that a loop depends on: when any of it changes, the loop is started anew."""

    server: str
    ca_data: str
    token: str
    catalogue: Catalogue


class WatchProcess:
    """Starts a loop for each enabled cluster and ends those of clusters that are not. Empty `names`: all."""

    def __init__(self, names: Collection[str] = (), *, hints: Hints | None = None) -> None:
        self._names = names
        self._hints = hints or Hints()
        self._loops: dict[int, tuple[Wanted, ClusterLoop]] = {}
        self._told = -1
        self._beat_at = 0.0

    def run(self, stopping: threading.Event) -> None:
        """Watch until `stopping` is set, then end within two seconds."""
        self._hints.start()
        while not stopping.is_set():
            try:
                close_old_connections()
                self._adjust()
                self._beat()
            except (OperationalError, InterfaceError) as error:
                log.warning("database_unreachable", error=str(error).strip())
                connection.close()
            stopping.wait(LOOK_S)
        self._end(list(self._loops))
        self._hints.stop()

    def _adjust(self) -> None:
        clusters = self._clusters()
        self._end([pk for pk, (wanted, _loop) in self._loops.items() if clusters.get(pk, (None,))[0] != wanted])
        for pk, (wanted, cluster) in clusters.items():
            if pk not in self._loops:
                self._start(wanted, cluster)
            else:
                self._loops[pk][1].ask_for_checks(cluster.probe_asked_at)

    def _clusters(self) -> dict[int, tuple[Wanted, Cluster]]:
        flavors = _flavors()
        rows = Cluster.objects.filter(is_enabled=True).prefetch_related("levels")
        if self._names:
            rows = rows.filter(name__in=self._names)
        return {cluster.pk: (_wanted(cluster, flavors), cluster) for cluster in rows}

    def _start(self, wanted: Wanted, cluster: Cluster) -> None:
        try:
            loop = ClusterLoop(cluster, wanted.catalogue, self._hints)
        except GatewayError as error:  # its address is not allowed any more
            Cluster.objects.filter(pk=cluster.pk).exclude(last_error=error.message).update(last_error=error.message)
            return
        log.info("watching", cluster=cluster.name, server=cluster.server)
        loop.start()
        self._loops[cluster.pk] = (wanted, loop)

    def _end(self, keys: list[int]) -> None:
        loops = [self._loops.pop(pk)[1] for pk in keys]
        for loop in loops:
            loop.stop()
        deadline = time.monotonic() + STOP_S
        for loop in loops:
            loop.join(max(0.0, deadline - time.monotonic()))

    def _beat(self) -> None:
        clusters = len(self._loops)
        if clusters != self._told or time.monotonic() >= self._beat_at:
            heartbeat.beat("watch", {"clusters": clusters})
            self._told, self._beat_at = clusters, time.monotonic() + BEAT_S


def calm_collector() -> None:
    """Let the cycle collector look seldom: lists of a large cluster make millions of containers, and no cycles.

    Otherwise half of the time of a large list goes to looking at everything that lives, again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


def _flavors() -> tuple[FlavorSelector, ...]:
    return tuple(
        FlavorSelector(flavor.pk, flavor.name, flavor.label_key, flavor.label_value, flavor.resource_name)
        for flavor in ResourceFlavor.objects.all()
    )


def _wanted(cluster: Cluster, flavors: tuple[FlavorSelector, ...]) -> Wanted:
    level_keys = tuple(level.label_key for level in cluster.levels.all())
    return Wanted(cluster.server, cluster.ca_data, cluster.token, Catalogue(flavors, level_keys))
