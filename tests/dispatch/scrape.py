"""One look of the collector at every exporter, in a thread and on a connection of its own."""

from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import async_to_sync
from django.db import connections

from clusters.telemetry.process import Collector
from clusters.telemetry.sources.dcgm import Exporters


def scrape() -> None:
    """Scrape once. Not in the test's own thread: where a browser was driven before, an event loop runs in that."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(_in_thread).result()


def _in_thread() -> None:
    try:
        async_to_sync(_scrape)()
    finally:
        connections.close_all()


async def _scrape() -> None:
    async with Exporters() as exporters:
        await Collector().scrape(exporters)
