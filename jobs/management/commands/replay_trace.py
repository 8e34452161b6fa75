"""Replay a published job trace against the clusters of this installation."""

import gzip
import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from jobs.replay.run import replay
from jobs.simulator.replay import Pace, Submission, plan
from jobs.simulator.traces import TraceError, read
from portal.identity.models import Team, User


class Command(BaseCommand):
    """Prints one line of JSON; exits with 1 when a rule did not hold."""

    help = "Submit the jobs of a trace at a faster pace, judge every watch event, print one line of JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the trace, its pace, and for whom it is submitted."""
        parser.add_argument("file", type=Path, help="a CSV file, .gz or plain")
        parser.add_argument("--jobs", type=int, default=500, help="the first so many (default 500)")
        parser.add_argument("--speed", type=float, default=600, help="divides arrival and run times (default 600)")
        parser.add_argument("--min-run", type=float, default=2, help="least seconds of a run (default 2)")
        parser.add_argument("--max-run", type=float, default=120, help="most seconds of a run (default 120)")
        parser.add_argument("--team", default="vision", help="slug of the team (default vision)")
        parser.add_argument("--timeout", type=float, default=900, help="seconds after the last submit (default 900)")

    def handle(self, *, file: Path, team: str, timeout: float, **options: float) -> None:
        """Read, replay, print."""
        pace = Pace(options["speed"], options["min_run"], options["max_run"])
        submissions = self._read(file, int(options["jobs"]), pace)
        chosen = Team.objects.filter(slug=team).first()
        owner = User.objects.filter(memberships__team=chosen).order_by("pk").first()
        if chosen is None or owner is None:
            raise CommandError(f"no team {team} with a member")
        report = replay(submissions, team=chosen, owner=owner, timeout_s=timeout)
        self.stdout.write(json.dumps(report.as_document()))
        if not report.ok:
            sys.exit(1)

    def _read(self, file: Path, most: int, pace: Pace) -> Sequence[Submission]:
        opened = gzip.open if file.suffix == ".gz" else open
        try:
            with opened(file, "rt") as lines:
                return plan(read(lines, most=most), pace)
        except (OSError, TraceError) as error:
            raise CommandError(f"{file}: {error}") from error
