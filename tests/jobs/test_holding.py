"""Rows, node counters and quota move together, once."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from clusters.models import NodeAccelerator
from jobs.accounting import drift
from jobs.models import Allocation, Attempt, Job
from jobs.services import holding
from jobs.services.holding import PlaceTakenError
from portal.core import clock
from quotas.models import QuotaUsage
from quotas.services.usage import QuotaExceededError
from tests.jobs.fleet import Fleet, make_fleet

pytestmark = pytest.mark.django_db(transaction=True)


def attempt_of(fleet: Fleet, job: Job | None = None) -> Attempt:
    now = clock.now()
    return Attempt.objects.create(
        job=job or fleet.job(),
        number=1,
        cluster=fleet.cluster,
        namespace="team",
        object_name=f"m-{now.timestamp()}",
        workers=1,
        resource_name="nvidia.com/gpu",
        step_at=now,
        due_at=now,
    )


def shares(fleet: Fleet, attempt: Attempt, *gpus: int, node: int = 0) -> list[Allocation]:
    """One rank for each number of GPUs, all on one node."""
    return [
        Allocation(
            attempt=attempt,
            rank=rank,
            node=fleet.nodes[node],
            node_uid=fleet.nodes[node].uid,
            flavor=fleet.flavor,
            queue_id=fleet.queue.pk,
            gpus=count,
            cpu_milli=1,
            memory_mib=1,
            made_at=clock.now(),
        )
        for rank, count in enumerate(gpus)
    ]


def hold(allocations: list[Allocation]) -> None:
    with transaction.atomic():
        holding.hold(allocations)


def used(fleet: Fleet) -> int:
    row = QuotaUsage.objects.filter(queue=fleet.queue).first()
    return row.used if row else 0


def at_once(count: int, act: Callable[[int], object]) -> list[object]:
    """Run `act` in that many threads at the same moment; return results, errors included."""
    barrier = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        try:
            barrier.wait(timeout=30)
            results[number] = act(number)
        except Exception as error:  # what was raised is the result
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_what_is_held_is_counted_on_node_and_queue_and_given_back_once() -> None:
    fleet = make_fleet()
    attempt = attempt_of(fleet)

    hold(shares(fleet, attempt, 4, 2))
    assert (fleet.held_by_node(), used(fleet)) == ({"n0": 6}, 6)

    assert holding.release(attempt.allocations.filter(rank=1)) == 1
    assert (fleet.held_by_node(), used(fleet)) == ({"n0": 4}, 4)
    assert holding.release(attempt.allocations.all()) == 1
    assert holding.release(attempt.allocations.all()) == 0
    assert (fleet.held(), used(fleet)) == (0, 0)


def test_a_node_that_lacks_one_gpu_refuses_the_whole_admission() -> None:
    fleet = make_fleet()
    NodeAccelerator.objects.filter(node=fleet.nodes[1]).update(foreign=1)
    attempt = attempt_of(fleet)

    with pytest.raises(PlaceTakenError):
        hold([*shares(fleet, attempt, 8), *shares(fleet, attempt, 0, 8, node=1)[1:]])

    assert (fleet.held(), used(fleet), Allocation.objects.count()) == (0, 0, 0)


def test_a_quota_that_lacks_one_gpu_refuses_the_whole_admission() -> None:
    fleet = make_fleet(quota=7)

    with pytest.raises(QuotaExceededError):
        hold(shares(fleet, attempt_of(fleet), 4, 4))

    assert (fleet.held(), used(fleet), Allocation.objects.count()) == (0, 0, 0)


def test_a_rank_holds_one_place_at_a_time() -> None:
    fleet = make_fleet()
    attempt = attempt_of(fleet)
    hold(shares(fleet, attempt, 1))

    with pytest.raises(Exception, match="allocation_rank_held_once"):
        hold(shares(fleet, attempt, 1, node=1))

    assert (fleet.held(), used(fleet)) == (1, 1)


def test_twenty_releases_at_once_give_back_once() -> None:
    fleet = make_fleet()
    attempt = attempt_of(fleet)
    hold(shares(fleet, attempt, 4, 4))
    rows = list(attempt.allocations.all())

    results = at_once(20, lambda _number: holding.release(rows))

    assert sorted(map(str, results)) == ["0"] * 19 + ["2"]
    assert (fleet.held(), used(fleet)) == (0, 0)
    assert drift.findings() == []


def test_twenty_admissions_at_once_never_exceed_node_or_quota() -> None:
    fleet = make_fleet(nodes=1, quota=6)
    attempts = [attempt_of(fleet) for _ in range(20)]

    results = at_once(20, lambda number: hold(shares(fleet, attempts[number], 1)))

    refused = [result for result in results if isinstance(result, QuotaExceededError | PlaceTakenError)]
    assert (len(refused), results.count(None)) == (14, 6)
    assert (fleet.held(), used(fleet), Allocation.objects.count()) == (6, 6, 6)


def test_holding_and_releasing_against_each_other_never_deadlocks_and_ends_even() -> None:
    fleet = make_fleet(nodes=2, quota=16)
    attempts = [attempt_of(fleet) for _ in range(10)]

    def come_and_go(number: int) -> int:
        done = 0
        for turn in range(5):
            node = (number + turn) % 2
            try:
                hold([*shares(fleet, attempts[number], 2, node=node), *shares(fleet, attempts[number], 0, 2)[1:]])
            except (QuotaExceededError, PlaceTakenError):
                continue
            done += holding.release(attempts[number].allocations.filter(released_at=None))
        return done

    results = at_once(10, come_and_go)

    assert all(isinstance(result, int) for result in results), results
    assert (fleet.held(), used(fleet)) == (0, 0)
    assert drift.findings() == []


def test_drift_names_what_disagrees() -> None:
    fleet = make_fleet()
    attempt = attempt_of(fleet)
    hold(shares(fleet, attempt, 4))
    NodeAccelerator.objects.filter(node=fleet.nodes[0]).update(held=7)
    QuotaUsage.objects.filter(queue=fleet.queue).update(used=1)
    Attempt.objects.update(step=Attempt.Step.ENDED)

    found = {finding.code: (finding.expected, finding.found) for finding in drift.findings()}

    assert found["node_held"] == (4, 7)
    assert found["quota_usage"] == (4, 1)
    assert found["ended_attempt_holds"] == (0, 1)
