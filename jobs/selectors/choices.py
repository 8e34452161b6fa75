"""What a team may choose from in a form."""

from collections.abc import Iterable
from dataclasses import dataclass

from clusters.models import Cluster, PersistentClaim, ResourceFlavor, TopologyLevel
from clusters.selectors.capacity import free_by_flavor
from portal.core import clock
from portal.identity.models import Team, TeamSecret
from quotas.models import Queue, Quota
from quotas.selectors.priority import priorities_for

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """(value, label) pairs. `flavors` are those that a queue of the team has quota for."""

    priorities: Options
    default_priority: str
    queues: Options
    flavors: Options
    clusters: Options
    levels: Options
    claims: Options
    secrets: Options
    secret_keys: Options
    pull_secrets: Options


def choices_for(team: Team) -> Choices:
    """Read the choices of a team, in a fixed number of queries."""
    rungs = list(priorities_for(team))
    secrets = list(TeamSecret.objects.filter(team=team).order_by("name"))
    return Choices(
        priorities=tuple((rung.name, rung.name) for rung in rungs),
        default_priority=next((rung.name for rung in rungs if rung.is_default), ""),
        queues=tuple((queue.name, queue.name) for queue in Queue.objects.filter(team=team).order_by("name")),
        flavors=_flavors(team),
        clusters=_same(Cluster.objects.filter(is_enabled=True).order_by("name").values_list("name", flat=True)),
        levels=_same(dict.fromkeys(TopologyLevel.objects.order_by("depth").values_list("name", flat=True))),
        claims=_claims(team),
        secrets=_same(secret.name for secret in secrets if not secret.is_pull_secret),
        secret_keys=_same(dict.fromkeys(key for secret in secrets for key in secret.keys)),
        pull_secrets=_same(secret.name for secret in secrets if secret.is_pull_secret),
    )


def flavor_names() -> list[str]:
    """Return the flavors of the installation, in the administrators' order."""
    return list(ResourceFlavor.objects.values_list("name", flat=True))


def _flavors(team: Team) -> Options:
    granted = set(Quota.objects.filter(queue__team=team, nominal__gt=0).values_list("flavor_id", flat=True))
    free = {row.flavor_id: row.free for row in free_by_flavor(clock.now())}
    return tuple(
        (flavor.name, f"{flavor.title} ({free.get(flavor.pk, 0)})")
        for flavor in ResourceFlavor.objects.all()
        if flavor.pk in granted
    )


def _claims(team: Team) -> Options:
    rows = PersistentClaim.objects.filter(namespace=team.namespace).order_by("name", "pk")
    return tuple({row.name: (row.name, f"{row.size} {', '.join(row.access_modes)}") for row in rows}.values())


def _same(names: Iterable[str]) -> Options:
    return tuple((name, name) for name in names)
