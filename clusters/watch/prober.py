"""Makes the checks of one cluster: all at the start, every day and when asked; its policy and token every minute."""

import threading
import time
from datetime import datetime

import structlog
from django.db import InterfaceError, OperationalError, connection

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Unreachable
from clusters.models import Cluster
from clusters.probe.round import Round
from clusters.services.findings import Finding

log = structlog.get_logger(__name__)

DAY_S = 86_400.0
MINUTE_S = 60.0
# After a round that the cluster did not answer.
RETRY_S = 60.0
# The nodes appear with the first lists; a cluster on which we may not list them is checked without.
FIRST_WAIT_S = 10.0


class Prober(threading.Thread):
    """Checks in a thread of its own: a cluster that hangs, hangs here and holds up nothing else."""

    def __init__(self, gateway: Gateway, cluster: Cluster) -> None:
        super().__init__(name=f"probe-{cluster.name}", daemon=True)
        self._cluster = cluster
        self._round = Round(cluster, gateway, self._pause)
        self._log = log.bind(cluster=cluster.name)
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._asked_at = cluster.probe_asked_at
        self._due_at = 0.0
        self._told: Finding | None = None

    def run(self) -> None:
        """Check until stopped; neither an outage of the cluster nor one of the database ends it."""
        self._wake.wait(FIRST_WAIT_S)
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._turn()
            except Unreachable as error:
                self._log.info("not_checked", error=error.message)
            except (OperationalError, InterfaceError) as error:
                self._log.warning("database_unreachable", error=str(error).strip())
            except Exception:  # the thread must outlive an answer that nobody thought of
                self._log.exception("probe_error")
            finally:
                connection.close()  # it is idle for a minute now
            self._wake.wait(MINUTE_S)

    def ask(self, asked_at: datetime | None) -> None:
        """Make all checks soon, unless this very wish was met already."""
        if asked_at is not None and (self._asked_at is None or asked_at > self._asked_at):
            self._asked_at = asked_at
            self._due_at = 0.0
            self._wake.set()

    def nodes_are_known(self) -> None:
        """Make all checks now that there is something to judge."""
        self._due_at = 0.0
        self._wake.set()

    def stop(self) -> None:
        """End soon."""
        self._stopping.set()
        self._wake.set()

    def _turn(self) -> None:
        self._round.renew_token()
        if time.monotonic() < self._due_at:
            self._look_at_policy()
            return
        # Before the round: who asks while it runs gets one of their own.
        self._due_at = time.monotonic() + RETRY_S
        began = time.monotonic()
        self._round.whole()
        self._told = None
        self._due_at = max(self._due_at, began + DAY_S) if self._due_at else 0.0
        self._log.info("checked", seconds=round(time.monotonic() - began, 1))

    def _look_at_policy(self) -> None:
        found = self._round.of_policy()
        if found != self._told:
            self._round.write([found], is_whole_round=False)
            self._told = found

    def _pause(self, seconds: float) -> bool:
        return not self._stopping.wait(seconds)
