"""What teams, quotas and the ladder want to be on a cluster, as objects."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from clusters.manifests import guards, rights, spaces
from clusters.manifests.spaces import RungValues, SpaceValues
from clusters.manifests.values import Json
from clusters.models import Cluster, ClusterFinding, ResourceFlavor
from portal.identity.models import Team
from quotas.models import Guard, PriorityClass
from quotas.selectors.tree import quota_tree


@dataclass(frozen=True, slots=True)
class Wanted:
    """The objects of each space, in the order in which they can be created; None stands for no team."""

    by_team: Mapping[int | None, list[Json]]


def everything() -> Wanted:
    """Return what every cluster should have: the same on each, since a team's quota holds for all together."""
    teams = list(Team.objects.order_by("namespace"))
    gpus = _most_gpus(teams)
    by_team: dict[int | None, list[Json]] = {None: ladder()}
    by_team |= {team.pk: spaces.objects(_values(team, gpus[team.pk])) for team in teams}
    return Wanted(by_team)


def ladder() -> list[Json]:
    """Return the priority classes, the highest first."""
    rungs = PriorityClass.objects.values_list("name", "value", "description")
    return [
        spaces.priority_class(
            RungValues(name=name, value=value, description=description),
            domain=settings.MUSTER_DOMAIN,
            installation=settings.MUSTER_INSTALLATION,
        )
        for name, value, description in rungs
        if not name.startswith(spaces.RESERVED_PREFIX)
    ]


def manifests() -> list[Json]:
    """Return everything for a new cluster in the order in which it can be created, the portal's rights on it last."""
    return [*(body for bodies in everything().by_team.values() for body in bodies), *rights_of_keeping()]


def to_paste() -> Mapping[int | None, list[Json]]:
    """Return what an administrator of a cluster applies for each space: its objects, and our rights around them."""
    namespaces = dict(Team.objects.values_list("pk", "namespace"))
    return {
        team_id: bodies if team_id is None else [*bodies, *_bindings(namespaces[team_id])]
        for team_id, bodies in everything().by_team.items()
    }


def rights_of_keeping() -> list[Json]:
    """Return the rights by which the portal keeps all spaces of a cluster in step."""
    namespaces = list(Team.objects.order_by("pk").values_list("namespace", flat=True))
    return rights.for_spaces(namespaces, [body["metadata"]["name"] for body in ladder()])


def guards_of(cluster: Cluster, guard: str) -> list[Json]:
    """Return the policies against by-passes that should be on a cluster, and their bindings."""
    if guard == Guard.OFF:
        return []
    found = ClusterFinding.objects.filter(cluster=cluster, code="rights").values_list("numbers", flat=True).first()
    values = guards.values(
        domain=settings.MUSTER_DOMAIN,
        installation=settings.MUSTER_INSTALLATION,
        # As the cluster itself names our account, once it was asked.
        user=str((found or {}).get("user") or ""),
        resources=ResourceFlavor.objects.values_list("resource_name", flat=True),
    )
    return guards.objects(values, "deny" if guard == Guard.DENY else "audit")


def _bindings(namespace: str) -> list[Json]:
    return [rights.team_binding(namespace), rights.space_binding(namespace)]


def _values(team: Team, gpus: Mapping[str, int]) -> SpaceValues:
    return SpaceValues(
        domain=settings.MUSTER_DOMAIN,
        installation=settings.MUSTER_INSTALLATION,
        team=team.slug,
        namespace=team.namespace,
        gpus=gpus,
        callers=tuple(settings.MUSTER_SPACE_CALLERS),
        egress=tuple(settings.MUSTER_SPACE_EGRESS),
    )


def _most_gpus(teams: Iterable[Team]) -> dict[int, dict[str, int]]:
    """By team and resource name: flavors that nodes offer under one name share a line of the quota."""
    resources = dict(ResourceFlavor.objects.values_list("pk", "resource_name"))
    nominal: dict[tuple[int, str], int] = defaultdict(int)
    used: dict[tuple[int, str], int] = defaultdict(int)
    tree = quota_tree()
    team_of = {node.id: node.team_id for node in tree.nodes if node.team_id is not None}
    for cells, sums in ((tree.nominal, nominal), (tree.used, used)):
        for (node, flavor), gpus in cells.items():
            if node in team_of:
                sums[team_of[node], resources[flavor]] += gpus
    names = sorted(set(resources.values()))
    return {
        team.pk: {name: spaces.most_gpus(nominal[team.pk, name], used[team.pk, name]) for name in names}
        for team in teams
    }
