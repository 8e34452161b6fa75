"""A list as CSV: the rows of the page, for a spreadsheet that runs no formula, a bounded number of them."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from jobs.selectors import export
from portal.core import clock
from portal.identity.models import Team, User
from tests.factories import make_job, make_membership
from tests.jobs.scenes import Supply, make_placed

BrowserOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db


def body_of(response: Any) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in response.streaming_content])

    return bytes(async_to_sync(read)())


def rows(client: Client, address: str = "/jobs.csv") -> list[dict[str, str]]:
    response = client.get(address)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(body_of(response).decode(), newline="")))


def test_each_job_of_the_page_is_a_row_newest_first(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    make_job(
        team, alice, queue=supply.queue, name="waits", labels={"exp": "a", "x": ""}, spec={"accelerators": ["h100"]}
    )
    placed = make_placed(team, alice, supply, started_at=clock.now())

    first, second = rows(browser_of(alice))

    assert list(first) == list(export.COLUMNS)
    assert (first["id"], first["state"], first["team"], first["owner"]) == (placed.uid, placed.state, "vision", "alice")
    assert "sim-east" in first["detail"]
    assert first["started_at"].endswith("+00:00")
    assert (second["labels"], second["accelerators"], second["gpus"]) == ("exp=a x", "h100", "1")
    assert (second["started_at"], second["is_synthetic"]) == ("", "false")


def test_the_filters_of_the_page_hold_and_so_does_its_link(
    alice: User, bob: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    make_job(team, alice, queue=supply.queue, name="mine")
    make_job(team, bob, queue=supply.queue, name="his", kind="inference")
    client = browser_of(alice)
    page = client.get("/jobs/?mine=1&state=live&cursor=")

    assert page.context["csv_url"] == "/jobs.csv?mine=1&state=live"
    assert 'href="/jobs.csv?mine=1&amp;state=live"' in page.content.decode()
    assert [row["name"].rpartition("-")[0] for row in rows(client, page.context["csv_url"])] == ["mine"]
    assert [row["name"].rpartition("-")[0] for row in rows(client, "/services.csv")] == ["his"]
    assert client.get("/jobs.csv?state=nonsense").status_code == 400


def test_nobody_gets_the_jobs_of_a_team_that_is_not_theirs(
    alice: User, charlie: User, team: Team, other_team: Team, browser_of: BrowserOf
) -> None:
    make_job(team, alice)
    theirs = make_job(other_team, charlie)

    for address in ("/jobs.csv", "/jobs.csv?team=all", "/jobs.csv?team=vision", "/jobs.csv?q=train"):
        assert {row["id"] for row in rows(browser_of(charlie), address)} <= {theirs.uid}
    assert Client().get("/jobs.csv").status_code == 302


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\uff1d1", '=HYPERLINK("http://x","y")']
)
def test_no_text_is_a_formula(alice: User, team: Team, supply: Supply, browser_of: BrowserOf, text: str) -> None:
    make_job(team, alice, queue=supply.queue, labels={text: "1"}, spec={"accelerators": [text]})
    Job.objects.update(name=text)
    (row,) = rows(browser_of(alice))

    assert row["labels"] == f"'{text}=1"
    assert row["accelerators"] == f"'{text}"
    assert row["name"].startswith(f"'{text}")
    assert row["gpus"] == "1"


def test_a_long_list_comes_in_pieces_and_ends_where_it_says(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MOST", 7)
    monkeypatch.setattr(export, "AT_ONCE", 3)
    made = [make_job(team, alice, queue=supply.queue).uid for _each in range(8)]

    *shown, last = rows(browser_of(alice))

    assert [row["id"] for row in shown] == made[:0:-1]
    assert last["id"] == "Only the newest 7 jobs. Narrow the list with filters to see the others."
    Job.objects.filter(uid=made[0]).delete()
    assert [row["id"] for row in rows(browser_of(alice))] == made[:0:-1]  # all of them, and so no last line


def test_a_piece_costs_the_same_number_of_queries_however_long_it_is(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)

    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            rows(client)
        return len(asked)

    make_placed(team, alice, supply)
    few = cost()
    for _each in range(20):
        make_job(team, alice, queue=supply.queue)
    make_placed(team, alice, supply)
    assert cost() == few


def test_a_person_without_a_team_gets_the_heading_alone(team: Team, browser_of: BrowserOf) -> None:
    loner = make_membership(User.objects.create_user("loner"), team).user
    loner.memberships.all().delete()

    assert rows(browser_of(loner)) == []
