"""Look for what should never be: rows and clusters that disagree."""

import json

from django.core.management.base import BaseCommand, CommandError

from jobs.accounting import drift


class Command(BaseCommand):
    """Prints one line of JSON; fails when something disagrees."""

    help = "Compare jobs, allocations, counters and pods; exit with an error when they disagree."

    def handle(self, **_options: object) -> None:
        """Check, print, judge."""
        findings = drift.findings()
        self.stdout.write(json.dumps({"ok": not findings, "findings": [finding.as_document() for finding in findings]}))
        if findings:
            raise CommandError(f"{len(findings)} findings")
