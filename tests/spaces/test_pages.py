"""The pages and REST of spaces: what each person is shown, and what an administrator may ask for."""

import json

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from portal.core.models import AuditEvent
from portal.identity.models import Team, User
from quotas.models import Space, Tenancy
from tests.factories import make_cluster, make_membership, make_team, make_user

pytestmark = pytest.mark.django_db

SEEN = {
    "kind": "ResourceQuota",
    "name": "muster",
    "state": "altered",
    "fields": [["spec.hard.pods", "", "0"]],
    "error": "",
    "is_recreated": False,
}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def vision() -> Team:
    return make_team("vision")


@pytest.fixture
def space(vision: Team) -> Space:
    return Space.objects.create(cluster=make_cluster("north"), team=vision, state="drifted", objects_seen=[SEEN])


@pytest.fixture
def administrator() -> User:
    return make_user("root", is_superuser=True)


def test_the_page_names_the_field_and_has_the_yaml_and_the_button(space: Space, administrator: User) -> None:
    text = browser(administrator).get(reverse("quotas:spaces", args=["north"])).content.decode()

    assert "spec.hard.pods" in text
    assert "should not be there" in text
    assert "kind: NetworkPolicy" in text
    assert "name: muster-team" in text  # the binding in the namespace
    assert reverse("quotas:apply_space", args=["north"]) in text


def test_a_space_in_step_has_no_button_and_no_yaml(space: Space, administrator: User) -> None:
    Space.objects.update(state="in_step", objects_seen=[])
    text = browser(administrator).get(reverse("quotas:spaces", args=["north"])).content.decode()

    assert "kind: NetworkPolicy" not in text
    assert reverse("quotas:apply_space", args=["north"]) not in text


def test_the_button_leaves_a_wish_for_the_worker_and_a_trace(space: Space, administrator: User) -> None:
    answer = browser(administrator).post(reverse("quotas:apply_space", args=["north"]), {"team": "vision"})

    assert answer.status_code == 302
    assert Space.objects.get(pk=space.pk).asked_at is not None
    event = AuditEvent.objects.get(action="space.apply_asked")
    assert (event.actor, event.object_label, event.team_id) == ("root", "vision on north", space.team_id)


@pytest.mark.parametrize("team", ["nobody", "\0", "vision\0", "x" * 5000])
def test_a_team_that_is_none_is_not_found(space: Space, administrator: User, team: str) -> None:
    answer = browser(administrator).post(reverse("quotas:apply_space", args=["north"]), {"team": team})

    assert answer.status_code == 404
    assert Space.objects.get(pk=space.pk).asked_at is None


def test_a_disabled_cluster_is_not_applied_to(space: Space, administrator: User) -> None:
    space.cluster.is_enabled = False
    space.cluster.save()
    answer = browser(administrator).post(reverse("api:space-apply", args=[space.pk]))

    assert answer.status_code == 409
    assert answer.json()["code"] == "cluster_disabled"
    assert Space.objects.get(pk=space.pk).asked_at is None


def test_keeping_is_switched_on_the_version_that_was_seen(space: Space, administrator: User) -> None:
    client, address = browser(administrator), reverse("quotas:keep_spaces", args=["north"])
    client.post(address, {"version": "1", "is_kept": "on"})
    client.post(address, {"version": "1"})  # a page that was open meanwhile

    tenancy = Tenancy.objects.get()
    assert (tenancy.is_kept, tenancy.version) == (True, 2)
    assert AuditEvent.objects.get(action="space.keeping_changed").after == {"is_kept": True}


def test_a_member_sees_the_badge_of_the_own_team_alone(space: Space, vision: Team) -> None:
    alice, charlie = make_user("alice"), make_user("charlie")
    make_membership(alice, vision)
    make_membership(charlie, make_team("speech"))
    page = reverse("identity:team", args=["vision"])

    assert "Drifted" in browser(alice).get(page).content.decode()
    assert browser(charlie).get(page).status_code == 404
    listed = [browser(user).get(reverse("api:space-list")).json()["results"] for user in (alice, charlie)]
    assert [[row["namespace"] for row in rows] for rows in listed] == [["vision"], []]


def test_rest_tells_an_administrator_what_differs(space: Space, administrator: User) -> None:
    Space.objects.create(cluster=space.cluster, team=None, state="in_step")
    rows = browser(administrator).get(reverse("api:space-list")).json()["results"]

    assert [(row["team"], row["state"]) for row in rows] == [("vision", "drifted"), (None, "in_step")]
    assert json.loads(json.dumps(rows[0]["objects"])) == [SEEN]


def test_the_command_prints_spaces_before_what_is_bound_in_them(
    vision: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("cluster_manifests", "--spaces")

    text = capsys.readouterr().out
    assert text.index("kind: Namespace\nmetadata:\n  name: vision") < text.index("namespace: vision")
    assert "kind: ResourceQuota" in text
    assert "name: muster-spaces" in text
