"""One look of the collector at every exporter, in the test's own thread and on its own connection."""

from asgiref.sync import async_to_sync

from clusters.telemetry.process import Collector
from clusters.telemetry.sources.dcgm import Exporters


def scrape() -> None:
    """Scrape once."""
    async_to_sync(_scrape)()


async def _scrape() -> None:
    async with Exporters() as exporters:
        await Collector().scrape(exporters)
