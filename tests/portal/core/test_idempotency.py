"""A repeated request makes one thing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from portal.core.errors import DomainError
from portal.core.models import IdempotencyRecord
from portal.core.rest.idempotency import (
    Answer,
    IdempotencyKeyError,
    IdempotencyMismatchError,
    digest_of,
    run_once,
)
from portal.identity.models import Organization

DIGEST = digest_of(b"POST", b"/api/v1/jobs/", b"{}")


def make_one() -> Answer:
    row = Organization.objects.create(name=f"o{Organization.objects.count()}", slug=f"o{Organization.objects.count()}")
    return Answer(status=201, body={"id": row.pk})


def fail() -> Answer:
    Organization.objects.create(name="half", slug="half")
    raise DomainError("no quota", code="quota_exceeded")


@pytest.mark.django_db
def test_the_second_request_gets_the_first_answer() -> None:
    first = run_once(1, "key", DIGEST, make_one)
    second = run_once(1, "key", DIGEST, make_one)

    assert (second.status, second.body) == (first.status, first.body)
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert Organization.objects.count() == 1


@pytest.mark.django_db
def test_another_body_under_the_same_key_is_refused() -> None:
    run_once(1, "key", DIGEST, make_one)
    with pytest.raises(IdempotencyMismatchError) as refused:
        run_once(1, "key", digest_of(b"POST", b"/api/v1/jobs/", b"[]"), make_one)
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    assert Organization.objects.count() == 1


@pytest.mark.django_db
def test_another_person_has_keys_of_their_own() -> None:
    assert run_once(1, "key", DIGEST, make_one).body != run_once(2, "key", DIGEST, make_one).body


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "k" * 201, "k" * 1000, "schlüssel", "a\nb", "\x00"])
def test_an_odd_key_is_refused(key: str) -> None:
    with pytest.raises(IdempotencyKeyError) as refused:
        run_once(1, key, DIGEST, make_one)
    assert refused.value.status == 400
    assert not Organization.objects.exists()


@pytest.mark.django_db
def test_a_failed_act_leaves_nothing_and_frees_its_key() -> None:
    with pytest.raises(DomainError, match="no quota"):
        run_once(1, "key", DIGEST, fail)
    assert not Organization.objects.exists()
    assert not IdempotencyRecord.objects.exists()
    assert not run_once(1, "key", DIGEST, make_one).is_repeated


def test_digests_tell_where_one_part_ends() -> None:
    assert digest_of(b"ab", b"c") != digest_of(b"a", b"bc")


def in_threads(number: int, act: Callable[[], object]) -> list[object]:
    barrier = Barrier(number)

    def once(_index: int) -> object:
        try:
            barrier.wait(timeout=30)
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(once, range(number)))


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_requests_make_one_thing() -> None:
    answers = in_threads(20, lambda: run_once(1, "key", DIGEST, make_one).body)

    assert Organization.objects.count() == 1
    assert answers == [{"id": Organization.objects.get().pk}] * 20


@pytest.mark.django_db(transaction=True)
def test_of_parallel_requests_one_takes_over_when_the_first_fails() -> None:
    calls = iter([fail, *[make_one] * 7])

    def act() -> object:
        try:
            return run_once(1, "key", DIGEST, lambda: next(calls)()).body
        except DomainError:
            return None

    answers = in_threads(4, act)

    made = {"id": Organization.objects.get().pk}
    assert sorted(map(str, answers)) == sorted(map(str, [None, made, made, made]))
