"""The process that scrapes the GPUs."""

import asyncio
import signal

from django.core.management.base import BaseCommand

from clusters.telemetry.process import Collector


class Command(BaseCommand):
    """Runs until SIGTERM."""

    help = "Scrape the GPU exporters of all clusters and keep what they measured."

    def handle(self, **_options: object) -> None:
        """Collect until asked to stop."""
        asyncio.run(_collect())


async def _collect() -> None:
    collector = Collector()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, collector.stop)
    await collector.run()
