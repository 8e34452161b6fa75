"""Reserving and releasing: all counters on the path or none, never above nominal, never below zero."""

import pytest
from django.db import transaction
from django.test import TestCase

from portal.core.errors import DomainError
from quotas.models import Quota, QuotaUsage
from quotas.selectors.usage import Counter, counters
from quotas.services.usage import QuotaExceededError, UsageBelowZeroError, release, reserve
from tests.factories import make_flavor
from tests.quotas.conftest import World, give, queue_beside


def used_by_owner(world: World) -> dict[str, int]:
    rows = QuotaUsage.objects.filter(flavor=world.h100).select_related("queue", "cohort")
    return {str(row.queue or row.cohort): row.used for row in rows}


def test_a_reservation_counts_in_the_queue_and_in_every_cohort_above_it(world: World) -> None:
    give(world.vision, world.h100, 8)

    reserve(world.vision.pk, world.h100.pk, 5)

    assert used_by_owner(world) == {"acme": 5, "research": 5, "vision": 5}


def test_a_full_queue_refuses_with_its_name_and_all_numbers(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 5)

    with pytest.raises(QuotaExceededError) as refusal:
        reserve(world.vision.pk, world.h100.pk, 4)

    assert refusal.value.numbers == {"owner": "vision", "used": 5, "nominal": 8, "asked": 4, "flavor": "h100"}
    assert str(refusal.value) == "vision holds 5 of 8 h100 GPUs; 4 more do not fit."
    assert used_by_owner(world) == {"acme": 5, "research": 5, "vision": 5}


def test_a_parents_cap_binds_although_the_queue_has_room(world: World) -> None:
    give(world.vision, world.h100, 8)
    give(world.root, world.h100, 6)

    with pytest.raises(QuotaExceededError) as refusal:
        reserve(world.vision.pk, world.h100.pk, 7)

    assert refusal.value.numbers["owner"] == "acme"
    assert refusal.value.numbers["nominal"] == 6


def test_siblings_fill_their_parent_together(world: World) -> None:
    speech = queue_beside(world, "speech")
    for owner, nominal in ((world.vision, 8), (speech, 8), (world.research, 10)):
        give(owner, world.h100, nominal)
    reserve(world.vision.pk, world.h100.pk, 8)

    with pytest.raises(QuotaExceededError, match="research holds 8 of 10"):
        reserve(speech.pk, world.h100.pk, 3)

    reserve(speech.pk, world.h100.pk, 2)
    assert used_by_owner(world) == {"acme": 10, "research": 10, "vision": 8, "speech": 2}


def test_a_queue_without_a_quota_has_none(world: World) -> None:
    with pytest.raises(QuotaExceededError) as refusal:
        reserve(world.vision.pk, world.h100.pk, 1)

    assert refusal.value.numbers["nominal"] == 0


def test_a_quota_of_one_flavor_does_not_serve_another(world: World) -> None:
    give(world.vision, make_flavor("a100"), 8)

    with pytest.raises(QuotaExceededError):
        reserve(world.vision.pk, world.h100.pk, 1)


def test_a_refusal_leaves_the_callers_transaction_usable(world: World) -> None:
    give(world.vision, world.h100, 4)

    with transaction.atomic():
        reserve(world.vision.pk, world.h100.pk, 3)
        with pytest.raises(QuotaExceededError):
            reserve(world.vision.pk, world.h100.pk, 2)
        reserve(world.vision.pk, world.h100.pk, 1)

    assert used_by_owner(world)["vision"] == 4


def test_a_lowered_quota_counts_at_once(world: World) -> None:
    quota = give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 4)
    Quota.objects.filter(pk=quota.pk).update(nominal=2)

    with pytest.raises(QuotaExceededError, match="holds 4 of 2"):
        reserve(world.vision.pk, world.h100.pk, 1)

    release(world.vision.pk, world.h100.pk, 4)  # over-use ends by itself
    assert used_by_owner(world)["vision"] == 0


def test_release_gives_back_on_the_whole_path(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 8)

    release(world.vision.pk, world.h100.pk, 3)

    assert used_by_owner(world) == {"acme": 5, "research": 5, "vision": 5}


@pytest.mark.parametrize("reserved", [0, 3])
def test_release_never_goes_below_zero(world: World, reserved: int) -> None:
    give(world.vision, world.h100, 8)
    if reserved:
        reserve(world.vision.pk, world.h100.pk, reserved)

    with pytest.raises(UsageBelowZeroError):
        release(world.vision.pk, world.h100.pk, 4)

    assert set(used_by_owner(world).values()) <= {reserved}


@pytest.mark.parametrize("gpus", [0, -1])
def test_only_whole_positive_amounts_are_moved(world: World, gpus: int) -> None:
    with pytest.raises(ValueError, match="cannot be reserved"):
        reserve(world.vision.pk, world.h100.pk, gpus)


@pytest.mark.django_db(transaction=True)
def test_a_reservation_outside_a_transaction_is_refused(committed_world: World) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        reserve(committed_world.vision.pk, committed_world.h100.pk, 1)


def test_a_queue_that_is_gone_is_named_as_such(world: World) -> None:
    with pytest.raises(DomainError) as refusal:
        reserve(world.vision.pk + 1000, world.h100.pk, 1)

    assert refusal.value.code == "unknown_queue"


def test_a_reservation_costs_the_same_few_queries_in_a_used_tree(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 1)

    with TestCase().assertNumQueries(5):  # path, lock, savepoint, update, end of the savepoint
        reserve(world.vision.pk, world.h100.pk, 1)


def test_the_counters_are_read_by_owner_and_flavor(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 2)

    assert counters() == {
        Counter(world.vision.pk, None, world.h100.pk): 2,
        Counter(None, world.research.pk, world.h100.pk): 2,
        Counter(None, world.root.pk, world.h100.pk): 2,
    }
