"""`manage.py cluster_manifests`: what the administrator of a cluster applies before it is registered."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from clusters.manifests import guards, rights
from clusters.manifests.adapters import born_pinned
from clusters.manifests.text import to_yaml
from clusters.manifests.values import Json
from clusters.models import ResourceFlavor
from portal.identity.selectors import team_namespaces

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Command(BaseCommand):
    """Prints YAML for `kubectl apply -f -`."""

    help = "Print the account and roles that the portal needs on a cluster, as YAML for kubectl apply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--namespace",
            action="append",
            default=[],
            type=_namespace,
            metavar="NAME",
            help="a namespace of a team; repeatable. Without it: those of all teams",
        )
        parser.add_argument(
            "--level",
            choices=["L0", "B"],
            default="L0",
            help="B adds the policy by which Kubernetes 1.36 and newer pin the pods of a gang at their creation",
        )
        parser.add_argument(
            "--spaces",
            action="store_true",
            help="also the teams' namespaces with quota and network policy, the priority classes, and the rights by "
            "which the portal keeps them in step",
        )
        parser.add_argument(
            "--guards",
            choices=["audit", "deny"],
            help="also the policies against by-passes: first told, later refused",
        )
        parser.add_argument(
            "--pod-groups",
            action="store_true",
            help="also the right to make PodGroups, by which Kubernetes 1.37 and newer, where the feature gate "
            "GenericWorkload is on, bind a gang whole or not at all",
        )
        parser.add_argument("--renew-token", action="store_true", help="let the account renew its own token")

    def handle(self, *_args: object, **options: Any) -> None:
        """Print."""
        level_b = options["level"] == "B"
        namespaces = options["namespace"] or team_namespaces()
        objects = rights.objects(
            namespaces,
            with_policy=level_b,
            with_renewal=options["renew_token"],
            with_groups=options["pod_groups"],
        )
        policy = born_pinned.objects(settings.MUSTER_DOMAIN) if level_b else []
        spaces = import_string(settings.MUSTER_SPACES_MANIFESTS)() if options["spaces"] else []
        # The namespaces come before the bindings in them.
        bodies = [*_first(spaces), *objects, *_rest(spaces), *policy, *_guards(options["guards"])]
        self.stdout.write(to_yaml(bodies), ending="")


def _namespace(text: str) -> str:
    if not _DNS_LABEL.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r} names no namespace: at most 63 lower-case letters, digits and hyphens inside"
        )
    return text


def _guards(mode: guards.Mode | None) -> list[Json]:
    if mode is None:
        return []
    values = guards.values(
        domain=settings.MUSTER_DOMAIN,
        installation=settings.MUSTER_INSTALLATION,
        user="",
        resources=ResourceFlavor.objects.values_list("resource_name", flat=True),
    )
    return guards.objects(values, mode)


def _first(bodies: list[Json]) -> list[Json]:
    return [body for body in bodies if body["kind"] == "Namespace"]


def _rest(bodies: list[Json]) -> list[Json]:
    return [body for body in bodies if body["kind"] != "Namespace"]
