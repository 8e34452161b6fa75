"""What faults cost, for people, spreadsheets and programs; runs of strangers stay theirs."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from rest_framework.test import APIClient

from clusters.models import Node, NodeFault, ResourceFlavor
from jobs.models import Allocation, Attempt, Incident, Job
from jobs.services.incidents import open_incident
from portal.core import clock
from portal.identity.models import Team, User
from tests.factories import (
    PASSWORD,
    make_cluster,
    make_flavor,
    make_job,
    make_membership,
    make_node,
    make_team,
    make_user,
)
from tests.jobs.test_export import body_of

pytestmark = pytest.mark.django_db
Rest = Callable[[User], APIClient]


@pytest.fixture
def team() -> Team:
    return make_team("vision")


@pytest.fixture
def owner(team: Team) -> User:
    return make_membership(make_user("alice"), team).user


@pytest.fixture
def node() -> Node:
    return make_node(make_cluster("north"), flavor=make_flavor("h100"), name="n1")


def hit(
    node: Node, job: Job, *, minutes_ago: int = 10, gpus: int = 16, lost_s: int = 3600, cents: int | None = None
) -> Incident:
    """An ended attempt that the node failed."""
    at = clock.now() - timedelta(minutes=minutes_ago)
    number = job.attempts.count() + 1
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        cluster=node.cluster,
        namespace="team",
        object_name=f"m-{job.uid}-a{number}",
        workers=2,
        resource_name="nvidia.com/gpu",
        step=Attempt.Step.ENDED,
        step_at=at,
        due_at=at,
        ended_at=at + timedelta(seconds=30),
    )
    fault = NodeFault.objects.create(
        node=node, kind="condition", subject="GpuUnhealthy", detected_at=at, acts_at=at, cleared_at=at
    )
    return Incident.objects.create(
        attempt=attempt,
        node=node,
        fault=fault,
        kind="condition",
        message=f"node {node.name} reports GpuUnhealthy",
        detected_at=at,
        opened_at=at,
        gpus=gpus,
        lost_since=at - timedelta(seconds=lost_s),
        lost_gpu_s=gpus * lost_s,
        lost_cents=cents,
    )


def signed_in(client: Client, user: User) -> Client:
    client.login(username=user.username, password=PASSWORD)
    return client


def test_the_page_adds_up_what_was_lost_and_names_the_run(client: Client, node: Node, team: Team, owner: User) -> None:
    job = make_job(team, owner, name="llm")
    hit(node, job)
    hit(node, make_job(team, owner, name="vit"), gpus=8)

    page = signed_in(client, owner).get("/incidents/").content.decode()

    assert "node n1 reports GpuUnhealthy" in page
    assert job.full_name in page
    assert "24.0" in page  # 16 GPUs and 8 GPUs for an hour
    assert "waits for its next place" in page


def test_a_run_that_runs_again_says_after_how_long(client: Client, node: Node, team: Team, owner: User) -> None:
    job = make_job(team, owner)
    first = hit(node, job, minutes_ago=10)
    later = hit(node, job, minutes_ago=5).attempt
    Incident.objects.filter(attempt=later).delete()
    Attempt.objects.filter(pk=later.pk).update(started_at=clock.now() - timedelta(minutes=6))
    assert "ran again after 4 min" in signed_in(client, owner).get("/incidents/").content.decode()

    Attempt.objects.filter(pk=later.pk).update(started_at=first.detected_at + timedelta(seconds=14))
    assert "ran again after 14 s" in signed_in(client, owner).get("/incidents/").content.decode()


def test_a_run_whose_node_stays_away_says_what_it_waits_for(
    client: Client, node: Node, team: Team, owner: User
) -> None:
    incident = hit(node, make_job(team, owner))
    Attempt.objects.filter(pk=incident.attempt_id).update(step=Attempt.Step.STOPPING, ended_at=None)

    assert "a node that stays away must be deleted" in signed_in(client, owner).get("/incidents/").content.decode()


def test_strangers_are_told_the_team_and_nothing_of_the_run(
    client: Client, api_of: Rest, node: Node, team: Team, owner: User
) -> None:
    job = make_job(team, owner, name="secret-plan")
    hit(node, job)
    stranger = make_user("stranger")

    page = signed_in(client, stranger).get("/incidents/").content.decode()
    csv = body_of(client.get("/incidents.csv")).decode()
    (told,) = api_of(stranger).get("/api/v1/incidents/").json()["results"]

    for text in (page, csv, str(told)):
        assert "secret-plan" not in text
        assert job.uid not in text
        assert "vision" in text
    assert told["run"] is None


def test_rest_tells_times_and_gpu_minutes(api_of: Rest, node: Node, team: Team, owner: User) -> None:
    job = make_job(team, owner)
    incident = hit(node, job)

    (told,) = api_of(owner).get("/api/v1/incidents/?cluster=north&node=n1").json()["results"]

    assert (told["id"], told["run"], told["gpus"], told["lost_gpu_minutes"]) == (incident.pk, job.uid, 16, 960.0)
    assert told["kind"] == "condition"
    assert told["stopped_at"]
    assert told["running_again_at"] is None


@pytest.mark.parametrize("query", ["cluster=south", "node=n2", "node=%00"])
def test_filters_leave_out_what_they_do_not_name(
    client: Client, api_of: Rest, node: Node, team: Team, owner: User, query: str
) -> None:
    hit(node, make_job(team, owner))

    assert api_of(owner).get(f"/api/v1/incidents/?{query}").json()["results"] == []
    assert "There was none." in signed_in(client, owner).get(f"/incidents/?{query}").content.decode()


def test_the_csv_has_a_line_for_each(client: Client, node: Node, team: Team, owner: User) -> None:
    job = make_job(team, owner, name="llm")
    hit(node, job)

    lines = body_of(signed_in(client, owner).get("/incidents.csv")).decode().splitlines()

    assert lines[0].startswith("at,detected_at,cluster,node,kind,message,team,run")
    assert f"north,n1,condition,node n1 reports GpuUnhealthy,vision,{job.full_name},1,16,960.0,false" in lines[1]


def test_a_long_list_costs_as_many_queries_as_a_short_one(client: Client, node: Node, team: Team, owner: User) -> None:
    signed_in(client, owner)
    counts = []
    for many in (2, 30):
        for number in range(many):
            hit(node, make_job(team, owner), minutes_ago=number)
        with CaptureQueriesContext(connection) as asked:
            client.get("/incidents/")
        counts.append(len(asked))

    assert counts[0] == counts[1], [query["sql"][:90] for query in asked]
    assert counts[0] <= 14, [query["sql"][:300] for query in asked]


def test_home_points_to_nodes_that_need_a_look(client: Client, node: Node, owner: User) -> None:
    now = clock.now()
    NodeFault.objects.create(node=node, kind="condition", subject="GpuUnhealthy", detected_at=now, acts_at=now)
    Node.objects.update(is_faulty=True)

    page = signed_in(client, owner).get("/").content.decode()

    assert "1 node needs a look" in page


def test_money_is_shown_where_it_has_a_price_and_added_up(
    client: Client, api_of: Rest, node: Node, team: Team, owner: User, settings: Settings
) -> None:
    settings.MUSTER_CURRENCY = "CHF"
    hit(node, make_job(team, owner, name="llm"), cents=123_456)
    hit(node, make_job(team, owner, name="vit"), cents=44)
    hit(node, make_job(team, owner, name="free"))

    page = signed_in(client, owner).get("/incidents/").content.decode()
    told = api_of(owner).get("/api/v1/incidents/").json()["results"]
    lines = body_of(client.get("/incidents.csv")).decode().splitlines()

    assert "1,235.00 CHF" in page
    assert "and 1 incident without a price" in page
    assert "1,234.56 CHF" in page
    assert sorted((each["lost_cents"] or 0, each["currency"]) for each in told) == [
        (0, "CHF"),
        (44, "CHF"),
        (123_456, "CHF"),
    ]
    assert lines[0].endswith("lost_cents,currency")
    assert any(line.endswith(",123456,CHF") for line in lines)


def test_without_any_price_no_money_is_shown(client: Client, node: Node, team: Team, owner: User) -> None:
    hit(node, make_job(team, owner))

    assert "Money lost" not in signed_in(client, owner).get("/incidents/").content.decode()


def test_what_is_lost_is_counted_at_the_prices_of_the_places(node: Node, team: Team, owner: User) -> None:
    """Half an hour of twelve GPUs at 2.50, and four at 0.10 an hour more."""
    attempt = hit(node, make_job(team, owner)).attempt
    dear, cheap = make_flavor("dear", price_cents=250), make_flavor("cheap", price_cents=10)
    for rank, (flavor, gpus) in enumerate(((dear, 12), (cheap, 4))):
        place(attempt, node, flavor, rank=rank, gpus=gpus)
    Incident.objects.all().delete()
    Attempt.objects.filter(pk=attempt.pk).update(started_at=clock.now() - timedelta(minutes=30))
    attempt.refresh_from_db()

    made = opened(attempt, node)
    assert made.lost_cents is not None
    assert abs(made.lost_cents - (12 * 250 + 4 * 10) / 2) <= 3

    ResourceFlavor.objects.filter(pk=cheap.pk).update(price_cents=0)
    Incident.objects.all().delete()
    assert opened(attempt, node).lost_cents is None


def place(attempt: Attempt, node: Node, flavor: ResourceFlavor, *, rank: int, gpus: int) -> Allocation:
    return Allocation.objects.create(
        attempt=attempt,
        rank=rank,
        node=node,
        node_uid=node.uid,
        flavor=flavor,
        queue_id=1,
        gpus=gpus,
        cpu_milli=0,
        memory_mib=0,
        made_at=clock.now(),
        released_at=clock.now(),
    )


def opened(attempt: Attempt, node: Node) -> Incident:
    return open_incident(
        attempt=attempt,
        node=node,
        kind="gone",
        message="",
        fault=None,
        gpus=16,
        checkpoint_at=None,
        now=clock.now(),
    )
