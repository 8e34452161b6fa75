"""Pages by key: nothing lost, nothing doubled, whatever happens between two pages."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.core.exceptions import BadRequest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from jobs.models import Job
from portal.core.keyset import NEWEST_FIRST, DamagedCursorError, Page, keyset_page
from portal.identity.models import Team, User
from tests.factories import make_job

pytestmark = pytest.mark.django_db
# A constant, since it is part of the tests' names: all workers of a run must collect the same ones.
SAME_MOMENT = datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)


def cursor_of(*values: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def walk(order: Sequence[str] = NEWEST_FIRST, *, size: int = 10) -> list[Page[Job]]:
    pages, cursor = [], None
    while True:
        pages.append(keyset_page(Job.objects.all(), cursor=cursor, size=size, order=order))
        cursor = pages[-1].next
        if cursor is None:
            return pages


def ids(page: Page[Job]) -> list[int]:
    return [job.pk for job in page.rows]


@pytest.fixture
def jobs(team: Team, alice: User) -> list[Job]:
    made = [make_job(team, alice) for _ in range(25)]
    Job.objects.update(created_at=SAME_MOMENT, updated_at=SAME_MOMENT)
    return made


def test_rows_of_one_moment_are_each_seen_once_while_others_come(jobs: list[Job], team: Team, alice: User) -> None:
    seen, cursor = [], None
    for _ in range(3):
        page = keyset_page(Job.objects.all(), cursor=cursor, size=10)
        seen += ids(page)
        cursor = page.next
        newcomers = [make_job(team, alice) for _ in range(5)]
        Job.objects.filter(pk__in=[job.pk for job in newcomers]).update(created_at=SAME_MOMENT + timedelta(seconds=1))
        Job.objects.filter(pk__in=[job.pk for job in jobs[:3]]).update(state="running")

    assert cursor is None
    assert sorted(seen) == sorted(job.pk for job in jobs)


@pytest.mark.parametrize("first", ["created_at", "updated_at", "priority"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_every_order_walks_to_its_end_and_back(jobs: list[Job], first: str, sign: str) -> None:
    for number, job in enumerate(jobs):
        Job.objects.filter(pk=job.pk).update(priority=number // 5)
    order = (f"{sign}{first}", f"{sign}id")

    pages = walk(order)
    forward = [ids(page) for page in pages]

    assert [key for page in forward for key in page] == list(Job.objects.order_by(*order).values_list("pk", flat=True))
    back, cursor = [], pages[-1].previous
    while cursor is not None:
        page = keyset_page(Job.objects.all(), cursor=cursor, size=10, order=order)
        back.append(ids(page))
        cursor = page.previous
    assert back == forward[-2::-1]


def test_mixed_directions_are_kept(jobs: list[Job]) -> None:
    order = ("-priority", "created_at", "id")
    assert [key for page in walk(order) for key in ids(page)] == list(
        Job.objects.order_by(*order).values_list("pk", flat=True)
    )


def test_the_first_page_has_no_previous_and_the_last_no_next(jobs: list[Job]) -> None:
    pages = walk()
    assert [len(page.rows) for page in pages] == [10, 10, 5]
    assert pages[0].previous is None
    assert pages[-1].next is None


def test_a_page_costs_one_query_and_no_count(
    jobs: list[Job], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1) as queries:
        keyset_page(Job.objects.all(), cursor=None, size=10)
    assert "COUNT" not in queries.captured_queries[0]["sql"]


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "ä",
        "%00",
        "\x00",
        "A" * 5000,
        cursor_of("next"),
        cursor_of("next", 1),
        cursor_of("sideways", SAME_MOMENT.isoformat(), 1),
        cursor_of("next", "2026-01-01T00:00:00", 1),
        cursor_of("next", SAME_MOMENT.isoformat(), "1; DROP TABLE"),
        cursor_of("next", SAME_MOMENT.isoformat(), None),
        cursor_of("next", None, 1),
        cursor_of("next", SAME_MOMENT.isoformat(), 1.5),
        cursor_of("next", SAME_MOMENT.isoformat(), [1]),
        cursor_of("next", SAME_MOMENT.isoformat(), 10**30),
        cursor_of("next", "2026-01-01T00:00:00\x00Z", 1),
        cursor_of("next", "0001-01-01T00:00:00+23:00", 1),
        cursor_of("next", "0001-01-01T00:00:00Z", 1),
        cursor_of("next", "1969-12-31T23:59:59Z", 1),
        cursor_of("next", "9999-12-31T23:59:59-23:59", 1),
        cursor_of("next", SAME_MOMENT.isoformat(), 2**63),
        cursor_of("next", SAME_MOMENT.isoformat(), -(2**63) - 1),
        cursor_of("next", SAME_MOMENT.isoformat(), True),
        base64.urlsafe_b64encode(b"[" * 700).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"null").decode(),
        base64.urlsafe_b64encode(b'{"next": 1}').decode(),
    ],
)
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(DamagedCursorError) as refused:
        keyset_page(Job.objects.all(), cursor=cursor, size=10)
    assert refused.value.status == 400
    assert isinstance(refused.value, BadRequest)


@pytest.mark.parametrize("offset", ["+23:59", "-23:59", "+16:00", "+00:00:01"])
def test_a_moment_is_the_same_in_every_zone_that_python_knows(jobs: list[Job], offset: str) -> None:
    moment = datetime.fromisoformat(f"2026-12-24T12:00:00{offset}").isoformat()

    assert len(keyset_page(Job.objects.all(), cursor=cursor_of("next", moment, 2**63 - 1), size=50).rows) == 25


@pytest.mark.parametrize("name", ["\x00", "\ud800", "a\udfffb"])
def test_a_text_that_the_database_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(DamagedCursorError):
        keyset_page(Team.objects.all(), cursor=cursor_of("next", name, 1), size=10, order=("name", "id"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)


def cursors_of_a_moment(moment: datetime) -> st.SearchStrategy[str]:
    """Yield cursors that name a moment of any year, as far from UTC as Python reads, and any whole number."""
    offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    return st.tuples(offsets, st.integers()).map(
        lambda pair: cursor_of("next", moment.replace(tzinfo=pair[0]).isoformat(), pair[1])
    )


@hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.one_of(
        st.text(),
        st.datetimes(timezones=st.just(UTC)).flatmap(cursors_of_a_moment),
        st.lists(json_values, max_size=4).map(lambda values: cursor_of("next", *values)),
        json_values.map(lambda value: cursor_of("previous", SAME_MOMENT.isoformat(), value)),
    )
)
def test_no_cursor_is_an_error_of_ours(db: None, value: str) -> None:
    try:
        keyset_page(Job.objects.all(), cursor=value, size=10)
    except DamagedCursorError:
        return
