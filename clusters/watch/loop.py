"""Keeps the rows of one cluster true, for ever. Threads for the network, one thread for the database."""

import contextlib
import threading
from datetime import datetime

import structlog
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, close_old_connections, connection

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import GatewayError
from clusters.models import Cluster
from clusters.watch.hints import Hints
from clusters.watch.inbox import Batch, Inbox
from clusters.watch.inventory import Catalogue
from clusters.watch.mirror import Mirror, reader_for, sources
from clusters.watch.prober import Prober
from clusters.watch.reflector import Reflector
from portal.core import clock
from portal.core.publish import publish

log = structlog.get_logger(__name__)

# Batches: how long to gather after the first change, and the least time between two transactions.
GATHER_S = 0.02
SPACING_S = 0.25
LONGEST_PULSE_S = 4.0
_IDLE_S = 1.0
_PROBER_END_S = 1.0
_RETRY_S = 1.0


class Pulse(threading.Thread):
    """Asks the API server for a sign of life: quiet streams do not tell whether it still answers."""

    def __init__(self, gateway: Gateway, *, cluster: str) -> None:
        super().__init__(name=f"pulse-{cluster}", daemon=True)
        self.heard_at: datetime | None = None
        self.version = ""
        self.error = ""
        self._gateway = gateway
        self._interval_s = min(LONGEST_PULSE_S, settings.MUSTER_STALE_AFTER_S / 4)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Ask until stopped."""
        while not self._stopping.is_set():
            asked_at = clock.now()
            try:
                self.version = str(self._gateway.version().get("gitVersion") or "")[:60]
                self.error, self.heard_at = "", asked_at
            except GatewayError as error:
                self.error = error.message[:280]
            self._stopping.wait(self._interval_s)

    def stop(self) -> None:
        """End soon."""
        self._stopping.set()


class ClusterLoop(threading.Thread):
    """Mirrors one cluster until stopped. A cluster that hangs holds up nothing but itself."""

    def __init__(self, cluster: Cluster, catalogue: Catalogue, hints: Hints) -> None:
        super().__init__(name=f"mirror-{cluster.name}", daemon=True)
        self._cluster = cluster
        self._hints = hints
        self._log = log.bind(cluster=cluster.name)
        self._stopping = threading.Event()
        self._inbox = Inbox()
        self._mirror = Mirror(cluster, catalogue)
        self._gateway = Gateway(cluster)
        self._pulse = Pulse(self._gateway, cluster=cluster.name)
        reader = reader_for(catalogue)
        self._reflectors = [
            Reflector(self._gateway, source, reader, self._inbox, cluster=cluster.name) for source in sources()
        ]
        self._prober = Prober(self._gateway, cluster)
        self._threads: list[Pulse | Reflector | Prober] = [self._pulse, *self._reflectors, self._prober]
        self._pending = Batch()
        self._is_loaded = False
        self._is_synced = False
        self._told: tuple[datetime | None, str] = (cluster.heard_at, cluster.last_error)

    def run(self) -> None:
        """Mirror until stopped; neither an outage of the cluster nor one of the database ends it."""
        for thread in self._threads:
            thread.start()
        while not self._stopping.is_set():
            try:
                self._turn()
            except (OperationalError, InterfaceError) as error:
                self._log.warning("database_unreachable", error=str(error).strip())
                self._recover()
            except Exception:  # the thread must outlive a batch that the database refuses
                self._log.exception("mirror_error")
                self._recover()
        # Once stopped it writes nothing more, but it may be at it; one that waits for the cluster is not waited for.
        self._prober.join(_PROBER_END_S)
        connection.close()

    def ask_for_checks(self, asked_at: datetime | None) -> None:
        """Let the checks be made anew if they were asked for since they were last made."""
        self._prober.ask(asked_at)

    def stop(self) -> None:
        """End soon; the batch at hand is finished first."""
        self._stopping.set()
        for thread in self._threads:
            thread.stop()
        self._inbox.close()

    def _turn(self) -> None:
        if self._inbox.wait(_IDLE_S):
            self._stopping.wait(GATHER_S)
            self._pending.add_newer(self._inbox.take())
        close_old_connections()
        wrote = bool(self._pending) and self._has_all_lists()
        if wrote:
            self._write()
        self._note_life()
        if wrote:
            self._stopping.wait(SPACING_S)

    def _has_all_lists(self) -> bool:
        """Return whether the first batch is whole: nodes without their foreign pods would look empty."""
        wanted = {each.source.kind for each in self._reflectors if each.source.is_essential}
        return self._is_synced or wanted <= self._pending.lists.keys()

    def _write(self) -> None:
        if not self._is_loaded:
            self._mirror.load()
            self._is_loaded = True
        self._hints.ask(self._mirror.apply(self._pending))
        self._pending = Batch()
        if not self._is_synced:
            self._is_synced = True
            self._prober.nodes_are_known()

    def _note_life(self) -> None:
        """Write when the cluster was last heard of, and what is wrong with it, if either changed.

        It counts as heard only while everything essential flows: an answer to a ping makes no row true.
        """
        flows = self._is_synced and all(each.is_live for each in self._reflectors if each.source.is_essential)
        heard_at = self._pulse.heard_at if flows else self._told[0]
        error = self._error()
        if (heard_at, error) == self._told:
            return
        values = {"heard_at": heard_at, "last_error": error[:300]}
        if self._pulse.version:
            values["kubernetes_version"] = self._pulse.version
        Cluster.objects.filter(pk=self._cluster.pk).update(**values)
        if error != self._told[1]:
            publish(f"cluster:{self._cluster.pk}", self._cluster.name)
        self._told = (heard_at, error)

    def _error(self) -> str:
        streams = (f"{each.source.kind}: {each.error}" for each in self._reflectors if each.error)
        return self._pulse.error or next(streams, "")

    def _recover(self) -> None:
        self._is_loaded = False
        with contextlib.suppress(Error):
            connection.close()
        self._stopping.wait(_RETRY_S)
