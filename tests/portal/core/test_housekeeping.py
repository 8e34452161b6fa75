"""What is over is forgotten, in batches, and no sooner."""

from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from pytest_django import DjangoAssertNumQueries

from portal.core import clock, housekeeping
from portal.core.models import IdempotencyRecord, OutstandingTask
from portal.core.rest.idempotency import Answer, IdempotencyMismatchError, run_once
from portal.core.tasks import forget

pytestmark = pytest.mark.django_db
DAY = timedelta(hours=24)
MINUTE = timedelta(minutes=1)


def answer_of(key: str, at: datetime) -> None:
    run_once(1, key, "d", lambda: Answer(201, {"key": key}))
    IdempotencyRecord.objects.filter(key=key).update(created_at=at)


def keys() -> set[str]:
    return set(IdempotencyRecord.objects.values_list("key", flat=True))


def test_an_answer_is_kept_for_a_day_and_then_its_key_is_free_again() -> None:
    now = clock.now()
    answer_of("old", now - DAY - MINUTE)
    answer_of("new", now - DAY + MINUTE)

    forget()

    assert keys() == {"new"}
    assert not run_once(1, "old", "other", lambda: Answer(201, {})).is_repeated
    with pytest.raises(IdempotencyMismatchError):
        run_once(1, "new", "other", lambda: Answer(201, {}))


def test_one_run_forgets_a_batch_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(housekeeping, "AT_ONCE", 2)
    now = clock.now()
    for number in range(5):
        answer_of(str(number), now - 2 * DAY)

    with django_assert_num_queries(2):  # one a kind, however many rows there are
        assert housekeeping.prune(now) == 2
    assert keys() == {"2", "3", "4"}
    assert [housekeeping.prune(now) for _ in range(3)] == [2, 1, 0]


def test_a_session_that_is_over_goes_and_a_live_one_stays() -> None:
    now = clock.now()
    for name, ends in (("over", now - MINUTE), ("live", now + MINUTE)):
        Session.objects.create(session_key=name, session_data="", expire_date=ends)

    forget()

    assert list(Session.objects.values_list("session_key", flat=True)) == ["live"]


def test_the_task_frees_its_place_in_the_broker() -> None:
    OutstandingTask.objects.create(name="portal.core.tasks.forget", sent_at=clock.now())

    forget()

    assert OutstandingTask.objects.get(name="portal.core.tasks.forget").sent_at is None
