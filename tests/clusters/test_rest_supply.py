"""Clusters, nodes, flavors and capacity over REST."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from clusters.models import Cluster, NodeAccelerator, NodeFault, ResourceFlavor
from portal.core import clock
from portal.core.models import AuditEvent
from portal.identity.models import User
from tests.factories import make_cluster, make_flavor, make_node, make_user

pytestmark = pytest.mark.django_db
Rest = Callable[[User], APIClient]
SECRET = "sesame-open-5f2c"
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: it, user: me}}}}]
clusters: [{{name: it, cluster: {{server: "https://203.0.113.7:6443"}}}}]
users: [{{name: me, user: {{token: {SECRET}}}}}]
"""


@pytest.fixture(autouse=True)
def _patience(settings: Settings) -> None:
    # A slow machine makes nothing stale.
    settings.MUSTER_STALE_AFTER_S = settings.MUSTER_SCRAPE_S = 120.0


@pytest.fixture
def h100() -> ResourceFlavor:
    return make_flavor("h100")


@pytest.fixture
def north(h100: ResourceFlavor) -> Cluster:
    cluster = make_cluster("north")
    cluster.levels.create(depth=0, name="rack", label_key="t/rack")
    for number in range(3):
        make_node(cluster, flavor=h100, name=f"n{number}", labels={"t/rack": "r1"})
    NodeAccelerator.objects.filter(node__name="n0").update(held=3)
    return cluster


def test_a_person_without_a_team_reads_supply(api_of: Rest, north: Cluster) -> None:
    loner = api_of(make_user("loner"))

    (cluster,) = loner.get("/api/v1/clusters/").json()["results"]
    assert (cluster["name"], cluster["state"], cluster["nodes"], cluster["nodes_ready"]) == ("north", "healthy", 3, 3)
    assert cluster["levels"] == [{"name": "rack", "label_key": "t/rack"}]
    assert cluster["gpus"][0] | {"title": ""} == {
        "flavor": "h100", "title": "", "nodes": 3, "capacity": 24, "allocatable": 24, "usable": 24,
        "held": 3, "foreign": 0, "free": 21,
    }  # fmt: skip
    node = loner.get("/api/v1/nodes/?cluster=north").json()["results"][0]
    assert (node["name"], node["cluster"]) == ("n0", "north")
    assert node["gpus"] == [{"flavor": "h100", "capacity": 8, "allocatable": 8, "held": 3, "foreign": 0}]
    assert loner.get(f"/api/v1/nodes/{node['id']}/").json() == node
    assert loner.get("/api/v1/nodes/?cluster=south").json()["results"] == []
    assert loner.get("/api/v1/flavors/h100/").json()["resource_name"] == "nvidia.com/gpu"


def test_capacity_adds_up_and_says_which_gang_fits_now(api_of: Rest, bob: User, north: Cluster) -> None:
    far = make_cluster("south", heard_at=clock.now() - timedelta(hours=1))
    make_node(far, flavor=ResourceFlavor.objects.get())

    answer = api_of(bob).get("/api/v1/capacity/").json()

    (total,) = answer["flavors"]
    assert (total["capacity"], total["usable"], total["free"]) == (32, 24, 21)
    assert answer["largest_gangs"] == [{"flavor": "h100", "workers": 2, "gpus_per_worker": 8, "gpus": 16}]
    assert [(each["name"], each["state"]) for each in answer["clusters"]] == [("north", "healthy"), ("south", "stale")]
    assert answer["clusters"][1]["flavors"][0]["free"] == 0


def test_reads_take_the_same_few_queries_for_few_and_many(
    api_of: Rest, bob: User, north: Cluster, h100: ResourceFlavor, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        make_node(make_cluster(), flavor=h100)
    client = api_of(bob)

    for address in ("clusters/", "nodes/", "flavors/", "capacity/"):
        with django_assert_max_num_queries(8):
            assert client.get(f"/api/v1/{address}").status_code == 200


def test_an_administrator_registers_changes_and_levels_a_cluster(api_of: Rest, admin: User) -> None:
    client = api_of(admin)
    body: dict[str, Any] = {
        "name": "west",
        "kubeconfig": KUBECONFIG,
        "exporter_url": "http://{address}:9400/metrics",
        "levels": [{"name": "rack", "label_key": "t/rack"}],
    }

    made = client.post("/api/v1/clusters/", body, format="json")

    assert made.status_code == 201
    assert made.json()["state"] == "stale"
    assert SECRET not in made.content.decode()
    cluster = Cluster.objects.get()
    assert (cluster.token, cluster.server) == (SECRET, "https://203.0.113.7:6443")
    changed = client.patch("/api/v1/clusters/west/", {"version": 1, "is_enabled": False}, format="json")
    assert (changed.json()["state"], changed.json()["version"]) == ("disabled", 2)
    levels = {"version": 2, "levels": [{"name": "block", "label_key": "t/block"}]}
    assert client.put("/api/v1/clusters/west/levels/", levels, format="json").json()["levels"] == levels["levels"]
    stale = client.patch("/api/v1/clusters/west/", {"version": 1, "is_enabled": True}, format="json")
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert stale.json()["numbers"] == {"yours": 1, "current": 3}
    actions = list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["cluster.registered", "cluster.updated", "cluster.levels_set"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kubeconfig": KUBECONFIG.replace("token: ", "tokenFile: ")}, "kubeconfig"),
        ({"kubeconfig": KUBECONFIG.replace("https://", "http://")}, "kubeconfig"),
        ({"kubeconfig": "x" * 200_001}, "kubeconfig"),
        ({"kubeconfig": 7 * [None]}, "kubeconfig"),
        ({"name": "No Such Name"}, "name"),
        ({"name": ""}, "name"),
        ({"exporter_url": "ftp://x"}, "exporter_url"),
        ({"levels": [{"name": "node", "label_key": "t/x"}]}, "levels"),
        ({"levels": "rack"}, "levels"),
    ],
)
def test_bad_input_is_refused_by_field_and_never_repeats_the_token(
    api_of: Rest, admin: User, change: dict[str, Any], field: str
) -> None:
    body = {"name": "west", "kubeconfig": KUBECONFIG, **change}

    answer = api_of(admin).post("/api/v1/clusters/", body, format="json")

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(field)
    assert SECRET not in answer.content.decode()
    assert not Cluster.objects.exists()


def test_an_administrator_defines_changes_and_removes_a_flavor(api_of: Rest, admin: User, h100: ResourceFlavor) -> None:
    client = api_of(admin)
    body = {"name": "mi300x", "title": "MI300X", "resource_name": "amd.com/gpu", "label_value": "MI300X"}

    assert client.post("/api/v1/flavors/", body, format="json").status_code == 201
    assert client.patch("/api/v1/flavors/mi300x/", {"rank": 3}, format="json").json()["rank"] == 3
    assert client.delete("/api/v1/flavors/mi300x/").status_code == 204
    make_node(make_cluster(), flavor=h100)
    refused = client.delete("/api/v1/flavors/h100/")
    assert (refused.status_code, refused.json()["code"]) == (409, "flavor_in_use")
    assert client.post("/api/v1/flavors/", {"name": "bare"}, format="json").status_code == 422
    assert client.patch("/api/v1/flavors/h100/", {"label_key": "not a key"}, format="json").status_code == 422


@pytest.mark.parametrize("who", ["bob", "alice"])
def test_only_administrators_write(api_of: Rest, request: pytest.FixtureRequest, north: Cluster, who: str) -> None:
    client = api_of(request.getfixturevalue(who))

    answers = [
        client.post("/api/v1/clusters/", {}, format="json"),
        client.patch("/api/v1/clusters/north/", {}, format="json"),
        client.put("/api/v1/clusters/north/levels/", {}, format="json"),
        client.post("/api/v1/flavors/", {}, format="json"),
        client.patch("/api/v1/flavors/h100/", {}, format="json"),
        client.delete("/api/v1/flavors/h100/"),
    ]

    assert {answer.status_code for answer in answers} == {403}


def test_administrators_quarantine_a_node_over_rest(api_of: Rest, north: Cluster) -> None:
    admin, node = api_of(make_user("admin", is_superuser=True)), north.nodes.get(name="n1")
    address = f"/api/v1/nodes/{node.pk}/quarantine/"

    assert admin.post(address, {}, format="json").status_code == 422
    told = admin.post(address, {"reason": "fans"}, format="json").json()
    assert (told["quarantined_by"], told["quarantine_reason"]) == ("admin", "fans")
    again = admin.post(address, {"reason": "fans"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "quarantined")
    assert admin.delete(address).json()["quarantined_at"] is None
    assert admin.delete(address).json()["code"] == "not_quarantined"


def test_administrators_take_a_node_for_maintenance_over_rest(api_of: Rest, north: Cluster) -> None:
    admin, node = api_of(make_user("admin", is_superuser=True)), north.nodes.get(name="n1")
    address = f"/api/v1/nodes/{node.pk}/maintenance/"
    assert admin.get(address).json()["state"] is None

    deadline = (clock.now() + timedelta(hours=2)).isoformat()
    told = admin.post(address, {"deadline_at": deadline, "reason": "firmware"}, format="json").json()

    assert (told["state"], told["asked_by"], told["reason"], told["runs"]) == ("waiting", "admin", "firmware", [])
    assert api_of(make_user("loner")).get(address).json()["state"] == "waiting"
    far = (clock.now() + timedelta(days=90)).isoformat()
    refused = admin.post(address, {"deadline_at": far}, format="json")
    assert (refused.status_code, [each["field"] for each in refused.json()["errors"]]) == (422, ["deadline_at"])
    assert admin.delete(address).json()["state"] is None
    assert admin.delete(address).json()["code"] == "not_in_maintenance"


def test_a_mistaken_deadline_empties_no_node(api_of: Rest, north: Cluster) -> None:
    admin, node = api_of(make_user("admin", is_superuser=True)), north.nodes.get(name="n1")
    address = f"/api/v1/nodes/{node.pk}/maintenance/"
    later, passed = ((clock.now() + timedelta(hours=hours)).isoformat() for hours in (2, -2))

    for body, status, field in (
        ({"deadline": later}, 422, "deadline"),
        ({"deadline_at": passed}, 422, "deadline_at"),
        ({"deadline_at": "0001-01-01"}, 422, "deadline_at"),
    ):
        refused = admin.post(address, body, format="json")
        assert (refused.status_code, [each["field"] for each in refused.json()["errors"]]) == (status, [field])

    assert admin.get(address).json()["state"] is None
    just_now = (clock.now() - timedelta(seconds=30)).isoformat()
    assert admin.post(address, {"deadline_at": just_now}, format="json").json()["state"] == "draining"


def test_everybody_reads_the_faults_of_a_node(api_of: Rest, north: Cluster) -> None:
    node, now = north.nodes.get(name="n1"), clock.now()
    NodeFault.objects.create(node=node, kind="condition", subject="GpuUnhealthy", detected_at=now, acts_at=now)

    (told,) = api_of(make_user("loner")).get(f"/api/v1/nodes/{node.pk}/faults/").json()

    assert (told["kind"], told["subject"], told["cleared_at"]) == ("condition", "GpuUnhealthy", None)
