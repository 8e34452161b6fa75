"""`manage.py watch_clusters`: mirror the clusters into rows until told to stop."""

import signal
import threading
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from clusters.watch.process import WatchProcess, calm_collector


class Command(BaseCommand):
    """Mirrors clusters into rows."""

    help = "Mirror nodes, pods and objects of all enabled clusters (or those named) into rows, until SIGTERM."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--cluster", action="append", default=[], metavar="NAME", help="only this one; repeatable")

    def handle(self, *_args: object, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        stopping = threading.Event()

        def stop(_number: int, _frame: FrameType | None) -> None:
            stopping.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        calm_collector()
        WatchProcess(options["cluster"]).run(stopping)
