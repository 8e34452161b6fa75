"""Twenty at once on the real database: the guard holds, and without the guard the same test over-commits."""

import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from django.db import connection, transaction
from django.db.models import Q

from quotas.models import Queue, Quota, QuotaUsage
from quotas.services import usage
from quotas.services.usage import QuotaExceededError, UsageBelowZeroError, release, reserve
from tests.factories import make_flavor
from tests.quotas.conftest import World, give, queue_beside

THREADS = 20


def run_at_once(acts: Sequence[Callable[[], object]]) -> list[BaseException | None]:
    """Run each act in a thread and transaction of its own, all released at once; return what each raised."""
    barrier = threading.Barrier(len(acts))
    raised: list[BaseException | None] = [None] * len(acts)

    def run(index: int, act: Callable[[], object]) -> None:
        try:
            barrier.wait(timeout=20)
            with transaction.atomic():
                act()
        except Exception as error:
            raised[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index, act)) for index, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return raised


def two_queues_below_a_tight_parent(world: World) -> list[Queue]:
    speech = queue_beside(world, "speech")
    for owner, nominal in ((world.vision, 12), (speech, 12), (world.research, 16)):
        give(owner, world.h100, nominal)
    return [world.vision, speech]


def reserve_twenty_times(world: World) -> list[BaseException | None]:
    queues = two_queues_below_a_tight_parent(world)
    acts = [partial(reserve, queues[n % 2].pk, world.h100.pk, 2) for n in range(THREADS)]
    return run_at_once(acts)


def excess(world: World) -> dict[str, int]:
    """GPUs above nominal, by owner."""
    used = {(row.queue_id, row.cohort_id): row.used for row in QuotaUsage.objects.filter(flavor=world.h100)}
    quotas = Quota.objects.filter(flavor=world.h100).select_related("queue", "cohort")
    over = {str(row.queue or row.cohort): used[row.queue_id, row.cohort_id] - row.nominal for row in quotas}
    return {owner: gpus for owner, gpus in over.items() if gpus > 0}


def test_twenty_parallel_reservations_never_exceed_a_quota(committed_world: World) -> None:
    raised = reserve_twenty_times(committed_world)

    assert excess(committed_world) == {}
    assert QuotaUsage.objects.get(cohort=committed_world.research).used == 16
    refused = [error for error in raised if error is not None]
    assert len(refused) == THREADS - 8
    assert all(isinstance(error, QuotaExceededError) for error in refused)


def test_without_the_guard_the_same_twenty_exceed_the_quota(
    committed_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_room_for", lambda _gpus: Q())

    raised = reserve_twenty_times(committed_world)

    assert raised == [None] * THREADS
    assert excess(committed_world) == {"vision": 8, "speech": 8, "research": 24}


def test_first_reservations_at_once_make_each_counter_once(committed_world: World) -> None:
    world = committed_world
    give(world.vision, world.h100, THREADS)

    raised = run_at_once([lambda: reserve(world.vision.pk, world.h100.pk, 1)] * THREADS)

    assert raised == [None] * THREADS
    assert sorted(QuotaUsage.objects.values_list("used", flat=True)) == [THREADS] * 3


def test_one_reservation_released_twenty_times_at_once_is_given_back_once(committed_world: World) -> None:
    world = committed_world
    give(world.vision, world.h100, 8)
    run_at_once([lambda: reserve(world.vision.pk, world.h100.pk, 8)])

    raised = run_at_once([lambda: release(world.vision.pk, world.h100.pk, 8)] * THREADS)

    assert sum(error is None for error in raised) == 1
    assert sum(isinstance(error, UsageBelowZeroError) for error in raised) == THREADS - 1
    assert set(QuotaUsage.objects.values_list("used", flat=True)) == {0}


def test_transactions_that_reserve_and_release_several_times_do_not_lock_each_other_out(
    committed_world: World,
) -> None:
    world = committed_world
    queues = two_queues_below_a_tight_parent(world)
    a100 = make_flavor("a100")
    for queue in queues:
        give(queue, a100, 8)

    def several(order: list[Queue]) -> None:
        for flavor in (world.h100, a100):
            for queue in order:
                reserve(queue.pk, flavor.pk, 1)
            for queue in reversed(order):
                release(queue.pk, flavor.pk, 1)

    raised = run_at_once([partial(several, queues[:: 1 if n % 2 else -1]) for n in range(THREADS)])

    assert raised == [None] * THREADS
    assert set(QuotaUsage.objects.values_list("used", flat=True)) == {0}


def test_a_reservation_that_waited_sees_the_quota_that_was_lowered_meanwhile(committed_world: World) -> None:
    world = committed_world
    quota = give(world.vision, world.h100, 8)
    run_at_once([lambda: reserve(world.vision.pk, world.h100.pk, 4)])
    raised: list[BaseException | None] = []

    with transaction.atomic():
        QuotaUsage.objects.select_for_update().get(queue=world.vision)
        waiting = threading.Thread(
            target=lambda: raised.extend(run_at_once([lambda: reserve(world.vision.pk, world.h100.pk, 4)]))
        )
        waiting.start()
        wait_until_blocked()
        Quota.objects.filter(pk=quota.pk).update(nominal=5)
    waiting.join(timeout=20)

    assert isinstance(raised[0], QuotaExceededError)
    assert raised[0].numbers["nominal"] == 5


def wait_until_blocked() -> None:
    """Return when another connection waits for a lock of ours."""
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    with connection.cursor() as cursor:
        for _ in range(2000):
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(blocked)
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.005)")
    raise AssertionError("nobody waits")
