"""Nodes that fail again and again get no more work, by a breaker that never takes many at once, and by people."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from clusters.models import Cluster, Node, NodeEvent, NodeFault, NodeMaintenance, ResourceFlavor
from clusters.selectors.capacity import free_by_flavor
from clusters.selectors.trouble import troubled_nodes
from clusters.services.faults import report_fault
from clusters.services.housekeeping import prune
from clusters.services.quarantine import quarantine_node, release_node
from portal.core import clock
from portal.core.audit import Actor
from portal.core.errors import DomainError
from portal.core.models import AuditEvent
from tests.factories import PASSWORD, make_cluster, make_flavor, make_node, make_user

pytestmark = pytest.mark.django_db
ADMIN = Actor("ada", None)
Kind = NodeFault.Kind


@pytest.fixture
def h100() -> ResourceFlavor:
    return make_flavor("h100")


@pytest.fixture
def fleet(h100: ResourceFlavor) -> list[Node]:
    """Twenty nodes: two of them may be quarantined without a person."""
    cluster = make_cluster("north")
    return [make_node(cluster, flavor=h100, name=f"n{number:02}") for number in range(20)]


def fail(node: Node, times: int = 3) -> Node:
    for _ in range(times):
        report_fault(node=node, kind=Kind.REFUSED, detail={"message": "UnexpectedAdmissionError"})
    node.refresh_from_db()
    return node


def test_the_third_fault_within_a_day_quarantines_a_node_and_says_so(fleet: list[Node]) -> None:
    assert fail(fleet[0], 2).quarantined_at is None

    node = fail(fleet[0], 1)

    assert node.quarantined_at is not None
    assert (node.quarantined_by, node.quarantine_reason) == ("", "3 faults within 24 h")
    assert node.is_closed
    event = AuditEvent.objects.get(action="node.quarantined")
    assert (event.actor, event.object_label) == ("muster", "north/n00")
    assert NodeEvent.objects.filter(node=node, kind=NodeEvent.Kind.QUARANTINED).count() == 1


def test_faults_of_last_week_and_departures_do_not_count(fleet: list[Node]) -> None:
    node = fail(fleet[0], 2)
    NodeFault.objects.update(detected_at=clock.now() - timedelta(days=7))
    now = clock.now()
    for _ in range(3):
        NodeFault.objects.create(node=node, kind=Kind.GONE, detected_at=now, acts_at=now, cleared_at=now)

    assert fail(node, 2).quarantined_at is None


def test_no_more_than_a_tenth_of_a_flavor_is_taken_and_a_page_warns_of_the_rest(fleet: list[Node]) -> None:
    for node in fleet[:4]:
        fail(node)

    assert [node.name for node in Node.objects.exclude(quarantined_at=None).order_by("name")] == ["n00", "n01"]
    warned = [each for each in troubled_nodes(clock.now()) if each.is_warning]
    assert [each.node.name for each in warned] == ["n02", "n03"]
    assert "3 faults within 24 h" in warned[0].sentences[0]
    assert "at most 10 %" in warned[0].sentences[0]


def test_nodes_that_people_took_leave_the_breaker_its_share(fleet: list[Node]) -> None:
    for node in fleet[10:14]:
        quarantine_node(actor=ADMIN, node=node, reason="burn-in")

    fail(fleet[0])

    assert Node.objects.get(name="n00").quarantined_at is not None


def test_a_small_fleet_is_never_touched_without_a_person(h100: ResourceFlavor) -> None:
    node = make_node(make_cluster("tiny"), flavor=h100)

    assert fail(node, 5).quarantined_at is None


def test_no_node_is_quarantined_where_that_is_switched_off(fleet: list[Node], settings: Settings) -> None:
    settings.MUSTER_QUARANTINE_FAULTS = 0

    assert fail(fleet[0], 5).quarantined_at is None
    assert troubled_nodes(clock.now()) == []


def test_who_releases_a_node_forgives_its_faults(fleet: list[Node]) -> None:
    node = fail(fleet[0])

    release_node(actor=ADMIN, node=node)

    assert fail(node, 2).quarantined_at is None
    assert fail(node, 1).quarantined_at is not None
    assert AuditEvent.objects.get(action="node.released").before == {"by": "", "reason": "3 faults within 24 h"}


def test_a_quarantined_node_offers_nothing(fleet: list[Node]) -> None:
    before = free_by_flavor(clock.now())[0].free

    quarantine_node(actor=ADMIN, node=fleet[3], reason="fans")

    assert free_by_flavor(clock.now())[0].free == before - 8


def test_quarantine_is_refused_where_it_makes_no_sense(fleet: list[Node]) -> None:
    node = fleet[0]
    with pytest.raises(DomainError) as refusal:
        release_node(actor=ADMIN, node=node)
    assert refusal.value.code == "not_quarantined"
    quarantine_node(actor=ADMIN, node=node, reason="fans")
    with pytest.raises(DomainError) as refusal:
        quarantine_node(actor=ADMIN, node=node, reason="again")
    assert refusal.value.code == "quarantined"
    gone = make_node(node.cluster, gone_at=clock.now())
    with pytest.raises(DomainError) as refusal:
        quarantine_node(actor=ADMIN, node=gone, reason="fans")
    assert refusal.value.code == "node_gone"
    node.refresh_from_db()
    assert node.quarantine_reason == "fans"


def test_an_administrator_quarantines_and_releases_on_the_nodes_page(fleet: list[Node], client: Client) -> None:
    make_user("admin", is_superuser=True)
    client.login(username="admin", password=PASSWORD)
    address = "/console/clusters/north/nodes/n05"

    missing = client.post(f"{address}/quarantine/", {"reason": ""}, follow=True)
    assert "Say why" in missing.content.decode()
    page = client.post(f"{address}/quarantine/", {"reason": "two fans stand still"}, follow=True).content.decode()
    assert "Quarantined" in page
    assert "admin - two fans stand still" in page
    assert "Let it work again" in page

    page = client.post(f"{address}/release/", follow=True).content.decode()
    assert "Let it work again" not in page
    assert [event.action for event in AuditEvent.objects.order_by("pk")] == ["node.quarantined", "node.released"]


@pytest.mark.parametrize("minutes", ["soon", "-1", "99999999"])
def test_minutes_that_are_none_are_told_with_their_field(fleet: list[Node], client: Client, minutes: str) -> None:
    make_user("admin", is_superuser=True)
    client.login(username="admin", password=PASSWORD)
    page = client.post("/console/clusters/north/nodes/n05/maintenance/", {"minutes": minutes}, follow=True)

    assert "Minutes until its runs are stopped:" in page.content.decode()
    assert not NodeMaintenance.objects.exists()


def test_a_member_sees_the_quarantine_and_no_button(fleet: list[Node], client: Client) -> None:
    fail(fleet[5], 1)
    quarantine_node(actor=ADMIN, node=fleet[5], reason="two fans stand still")
    make_user("member")
    client.login(username="member", password=PASSWORD)

    page = client.get("/clusters/north/nodes/n05/").content.decode()

    assert "two fans stand still" in page
    assert "refused a pod that was given to it (UnexpectedAdmissionError)" in page
    assert "Let it work again" not in page
    assert "console/clusters/north/nodes" not in page
    assert "two fans stand still" in client.get("/clusters/north/").content.decode()


def test_old_faults_are_forgotten_and_open_ones_are_kept(fleet: list[Node], h100: ResourceFlavor) -> None:
    long_ago = clock.now() - timedelta(days=100)
    for over in (long_ago, None):
        NodeFault.objects.create(
            node=fleet[0], kind=Kind.CONDITION, detected_at=long_ago, acts_at=long_ago, cleared_at=over
        )

    prune(clock.now())

    assert NodeFault.objects.get().cleared_at is None


def test_the_cluster_of_a_node_is_named_where_it_matters(fleet: list[Node]) -> None:
    other = make_node(make_cluster("south"), flavor=ResourceFlavor.objects.get(), name="n00")
    quarantine_node(actor=ADMIN, node=other, reason="fans")

    assert troubled_nodes(clock.now(), cluster=Cluster.objects.get(name="north")) == []
    assert [each.node for each in troubled_nodes(clock.now())] == [other]
