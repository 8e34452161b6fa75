"""The spaces of teams on a real API server: what it stores is what was sent, and teams are kept apart."""

import secrets
from collections.abc import Iterator

import pytest

from clusters.models import Cluster
from portal.core.audit import SYSTEM
from portal.identity.models import Team
from quotas.models import PriorityClass, Space, Tenancy
from quotas.sync import rounds, wanted
from quotas.sync.wishes import ask_to_apply
from tests.contract.objects import wait_for
from tests.factories import make_cluster, make_flavor, make_priority_class, make_queue, make_team
from tests.kube.admin import Json
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(120)]


@pytest.fixture
def team(kube_plane: ControlPlane) -> Iterator[Team]:
    """A team with quota; afterwards nothing of it is on the server."""
    name = f"space-{secrets.token_hex(3)}"
    made = make_team(name)
    make_queue(made, quota={make_flavor("h100"): 8})
    make_priority_class(name, secrets.randbelow(100_000), description="of a test")
    yield made
    for kind in ("Namespace", "PriorityClass"):
        kube_plane.admin.delete(kind, "", name)


@pytest.fixture
def cluster(kube_plane: ControlPlane) -> Cluster:
    return make_cluster("real", server=kube_plane.server, ca_data=kube_plane.ca, token=kube_plane.token)


@pytest.fixture
def granted(kube_plane: ControlPlane) -> Iterator[list[Json]]:
    """Rights that a test has given the portal; they are taken away afterwards."""
    bodies: list[Json] = []
    yield bodies
    for body in bodies:
        metadata = body["metadata"]
        kube_plane.admin.delete(body["kind"], metadata.get("namespace", ""), metadata["name"])


def look(cluster: Cluster) -> dict[str, Space]:
    """One round; the spaces by namespace."""
    rounds.sync_one(cluster, wanted.everything())
    return {row.team.namespace if row.team else "": row for row in cluster.spaces.select_related("team")}


def paste(plane: ControlPlane, bodies: list[Json], granted: list[Json]) -> None:
    """What the administrator does with the YAML of the page."""
    for body in bodies:
        plane.admin.create(body)
        if "Role" in body["kind"]:
            granted.append(body)


def differing(space: Space) -> list[tuple[str, list[list[str]], str]]:
    return [(each["kind"], each["fields"], each["error"]) for each in space.objects_seen if each["state"] != "in_step"]


def test_with_the_least_rights_nothing_is_known_and_the_page_has_what_helps(
    kube_plane: ControlPlane, cluster: Cluster, team: Team, granted: list[Json]
) -> None:
    before = look(cluster)
    assert {row.state for row in before.values()} == {"unknown"}
    assert 'cannot list resource "namespaces"' in before[team.namespace].objects_seen[0]["error"]

    for team_id, bodies in wanted.to_paste().items():
        if team_id in (None, team.pk):
            paste(kube_plane, bodies, granted)
    rights = [body for body in wanted.rights_of_keeping() if body["kind"] != "RoleBinding"]
    paste(kube_plane, rights, granted)

    wait_for(lambda: look(cluster)[""].state == "in_step", "the rights are there", timeout_s=15)
    after = look(cluster)
    # Pasted by hand, read back field by field: the server has changed nothing that counts.
    assert {name: differing(row) for name, row in after.items()} == {"": [], team.namespace: []}


def test_the_portal_itself_keeps_a_space_in_step_with_these_rights_and_no_more(
    kube_plane: ControlPlane, cluster: Cluster, team: Team, granted: list[Json]
) -> None:
    kube_plane.open_namespace(team.namespace)
    paste(kube_plane, wanted.rights_of_keeping(), granted)
    Tenancy.objects.create(cluster=cluster, is_kept=True)
    wait_for(lambda: look(cluster)[""].state == "in_step", "the rights are there", timeout_s=15)

    drifted = look(cluster)[team.namespace]
    assert [kind for kind, _fields, _error in differing(drifted)] == ["Namespace"]  # not made by us: a person decides
    ask_to_apply(actor=SYSTEM, cluster=cluster, team=team)
    assert differing(look(cluster)[team.namespace]) == []

    path = f"/api/v1/namespaces/{team.namespace}/resourcequotas/muster"
    body = {"spec": {"hard": {"requests.nvidia.com/gpu": "1k"}}}
    assert kube_plane.admin.request("PATCH", path, body, kind="application/merge-patch+json")[0] == 200
    (kind, fields, _error), *rest = differing(look(cluster)[team.namespace])
    assert (kind, fields, rest) == ("ResourceQuota", [["spec.hard.requests.nvidia.com/gpu", "16", "1k"]], [])
    ask_to_apply(actor=SYSTEM, cluster=cluster, team=team)
    assert differing(look(cluster)[team.namespace]) == []

    PriorityClass.objects.filter(name=team.slug).update(value=123_456)
    assert differing(look(cluster)[""]) == []
    values = {each["metadata"]["name"]: each["value"] for each in kube_plane.admin.items("PriorityClass")}
    assert values[team.slug] == 123_456
