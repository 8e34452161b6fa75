"""Fill a demo: organization, clusters, logins, and a token for REST."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.identity.models import ApiToken, User
from portal.seed.history import make_history
from portal.seed.organisation import LOGINS, make_organisation
from portal.seed.supply import make_clusters

TOKEN_NAME = "demo"  # noqa: S105 -- a name


class Command(BaseCommand):
    """Prints one line of JSON with the logins and, the first time, the token."""

    # Those load every page of the portal; `migrate`, which ran before, has made them.
    requires_system_checks = []
    help = "Fill a demo with an organization, clusters and logins. Running it again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the files about the clusters."""
        parser.add_argument("--clusters", type=Path, required=True, help="the demo's file about its simulated clusters")

        parser.add_argument("--kube", type=Path, help="the demo's file about its real control planes")

    def handle(self, *, clusters: Path, kube: Path | None = None, **_options: object) -> None:
        """Seed, then print."""
        if not settings.DEMO:
            raise CommandError("seed_demo makes people with known passwords: it runs with MUSTER_DEMO=1 only")
        make_organisation()
        make_clusters(clusters, kube)
        make_history()
        told: dict[str, object] = {"logins": [asdict(login) for login in LOGINS]}
        if not ApiToken.objects.filter(user__username="alice", name=TOKEN_NAME).exists():
            _row, told["token"] = ApiToken.objects.create(User.objects.get(username="alice"), name=TOKEN_NAME)
        self.stdout.write(json.dumps(told))
