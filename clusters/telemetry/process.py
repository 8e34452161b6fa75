"""The loop of `collect_telemetry`: scrape, join, keep; roll up once a minute."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.db.models import Exists, OuterRef

from clusters.models import Node, NodeAccelerator, ObservedPod
from clusters.telemetry import store, xids
from clusters.telemetry.join import Owner, Sample, samples
from clusters.telemetry.parse import parse
from clusters.telemetry.sources.dcgm import Exporters
from clusters.telemetry.xids import Shown
from portal.core import clock, heartbeat
from portal.core.publish import publish

log = structlog.get_logger(__name__)

# Free GPUs change little: they are looked at this often at most.
IDLE_EVERY_S = 30.0
HEARTBEAT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Target:
    """One node to scrape, and who runs there."""

    node_id: int
    cluster_id: int
    url: str
    owners: dict[tuple[str, str], Owner] = field(default_factory=dict)


class Collector:
    """Scrapes until it is asked to stop."""

    def __init__(self, interval_s: float | None = None) -> None:
        self._interval_s = interval_s or settings.MUSTER_SCRAPE_S
        self._stop = asyncio.Event()
        self._idle_due = 0.0
        self._beat_due = 0.0
        self._rolled_up_to = clock.now() - timedelta(minutes=2)

    def stop(self) -> None:
        """End after the scrape under way."""
        self._stop.set()

    async def run(self) -> None:
        """Scrape at a steady pace; a database that is away costs scrapes, not the process."""
        async with Exporters() as exporters:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    await self.scrape(exporters)
                except (OperationalError, InterfaceError) as error:
                    log.warning("scrape_skipped", error=str(error))
                    await sync_to_async(close_old_connections)()
                await self._pause(max(0.1, self._interval_s - (time.monotonic() - began)))

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return

    async def scrape(self, exporters: Exporters) -> None:
        """Look at every exporter once, and keep what they show."""
        targets = await sync_to_async(self._targets)()
        texts = await exporters.fetch({target.node_id: target.url for target in targets})
        at = clock.now()
        found: list[Sample] = []
        shown: list[Shown] = []
        for target in targets:
            if text := texts.get(target.node_id):
                readings = parse(text)
                found += samples(readings, target.owners, at=at, cluster_id=target.cluster_id, node_id=target.node_id)
                shown += xids.shown(readings, target.owners, node_id=target.node_id)
        await sync_to_async(self._keep)(found, shown, at)

    def _targets(self) -> list[Target]:
        close_old_connections()
        with_idle = time.monotonic() >= self._idle_due
        if with_idle:
            self._idle_due = time.monotonic() + IDLE_EVERY_S
        return targets(with_idle=with_idle)

    def _keep(self, found: Sequence[Sample], shown: Sequence[Shown], at: datetime) -> None:
        xids.note(shown, at)
        if found:
            store.keep(found)
            for cluster_id in sorted({sample.cluster_id for sample in found}):
                publish(f"telemetry:{cluster_id}")
        minute = at.replace(second=0, microsecond=0)
        if minute > self._rolled_up_to:
            store.roll_up(self._rolled_up_to, minute)
            store.prune(at)
            self._rolled_up_to = minute
        if time.monotonic() >= self._beat_due:
            self._beat_due = time.monotonic() + HEARTBEAT_EVERY_S
            heartbeat.beat("collect", {"samples": len(found)})


def targets(*, with_idle: bool) -> list[Target]:
    """Return the nodes to scrape: those where a pod of ours runs, and the others too when asked for."""
    owners = _owners()
    has_gpus = Exists(NodeAccelerator.objects.filter(node=OuterRef("pk"), capacity__gt=0))
    nodes = Node.objects.filter(has_gpus, gone_at=None, cluster__is_enabled=True).exclude(cluster__exporter_url="")
    if not with_idle:
        nodes = nodes.filter(name__in={name for _cluster, name in owners})
    # Plain columns: whole rows would bring every label and condition of every node, every few seconds.
    rows = nodes.values_list("pk", "cluster_id", "name", "address", "cluster__exporter_url")
    return [
        Target(pk, cluster_id, _url(template, name, address), owners.get((cluster_id, name), {}))
        for pk, cluster_id, name, address, template in rows
        if with_idle or (cluster_id, name) in owners
    ]


def _owners() -> dict[tuple[int, str], dict[tuple[str, str], Owner]]:
    rows = ObservedPod.objects.filter(gone_at=None, phase="Running").exclude(node_name="")
    found: dict[tuple[int, str], dict[tuple[str, str], Owner]] = {}
    for row in rows.values_list("cluster_id", "node_name", "namespace", "name", "run", "rank", "uid"):
        cluster_id, node_name, namespace, name, run, rank, uid = row
        found.setdefault((cluster_id, node_name), {})[namespace, name] = Owner(run, rank, uid)
    return found


def _url(template: str, name: str, address: str) -> str:
    return template.replace("{node}", name).replace("{address}", address)
