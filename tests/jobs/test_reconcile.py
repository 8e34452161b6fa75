"""Claims of the driver: one worker an attempt, and no attempt that keeps the others waiting."""

from datetime import timedelta

import pytest
from django.db import transaction
from pytest_django import Settings

from clusters.models import Cluster, ObservedPod
from jobs.dispatch import limits, reconcile, start
from jobs.dispatch.progress import FencedOffError, advance, gathered_looks
from jobs.dispatch.view import View
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock
from tests.jobs.fleet import Fleet, claim

pytestmark = pytest.mark.django_db(transaction=True)

Step = Attempt.Step


def test_an_attempt_is_claimed_by_one_worker_at_a_time(attempt: Attempt) -> None:
    assert [view.attempt for view in claim()] == [attempt]
    assert claim() == []


def test_a_worker_whose_claim_was_taken_over_changes_nothing(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "CLAIM", timedelta(seconds=-1))
    (slow,), (fast,) = claim(), claim()

    advance(fast, step=Step.CREATED, due_s=0, object_uid="theirs")
    with pytest.raises(FencedOffError):
        advance(slow, step=Step.STOPPING, due_s=0)

    attempt.refresh_from_db()
    assert (attempt.step, attempt.object_uid) == (Step.CREATED, "theirs")


def test_what_goes_with_a_fenced_write_is_undone(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "CLAIM", timedelta(seconds=-1))
    (slow,), (_fast,) = claim(), claim()

    with pytest.raises(FencedOffError):
        _say_and_advance(slow)

    assert Job.objects.get().outcome_message == ""


def test_looks_are_written_together_and_only_where_the_claim_and_the_time_are_still_as_they_were(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fleet.job()
    cycle.run_once()
    kept, taken, moved = claim()
    now = clock.now()

    with gathered_looks():
        for view in (kept, taken, moved):
            advance(view, due_s=60)
        assert not Attempt.objects.filter(claimed_until=None).exists()
        Attempt.objects.filter(pk=taken.attempt.pk).update(fence=taken.attempt.fence + 1)
        Attempt.objects.filter(pk=moved.attempt.pk).update(due_at=now)

    rows = {row.pk: row for row in Attempt.objects.all()}
    assert rows[kept.attempt.pk].due_at > now + timedelta(seconds=50)
    assert rows[kept.attempt.pk].claimed_until is None
    assert rows[taken.attempt.pk].claimed_until is not None
    assert rows[moved.attempt.pk].due_at == now
    assert rows[moved.attempt.pk].claimed_until is None


def test_what_starts_is_claimed_before_what_runs(fleet: Fleet) -> None:
    runs, starts = fleet.job(), fleet.job()
    cycle.run_once()
    past = clock.now() - timedelta(minutes=5)
    Attempt.objects.filter(job=runs).update(step=Step.RUNNING, due_at=past)

    assert [view.job for view in claim()] == [starts, runs]


def test_an_attempt_that_has_ended_is_written_no_more(attempt: Attempt) -> None:
    (view,) = claim()
    Attempt.objects.update(step=Step.ENDED)

    with pytest.raises(FencedOffError):
        advance(view, due_s=0)


def test_an_attempt_is_due_by_time_or_by_news(attempt: Attempt, fleet: Fleet) -> None:
    now = clock.now()
    Attempt.objects.update(due_at=now + timedelta(hours=1), looked_at=now - timedelta(seconds=30))
    assert claim() == []

    ObservedPod.objects.create(
        cluster=fleet.cluster, uid="p", run=attempt.job.uid, attempt=1, resource_version="1", seen_at=now
    )

    assert len(claim()) == 1


def test_news_of_another_attempt_wakes_nobody(attempt: Attempt, fleet: Fleet) -> None:
    now = clock.now()
    Attempt.objects.update(due_at=now + timedelta(hours=1), looked_at=now - timedelta(seconds=30))

    ObservedPod.objects.create(
        cluster=fleet.cluster, uid="p", run=attempt.job.uid, attempt=2, resource_version="1", seen_at=now
    )

    assert claim() == []


def test_nothing_is_done_on_a_cluster_that_was_not_heard_of(attempt: Attempt, settings: Settings) -> None:
    Cluster.objects.update(heard_at=clock.now() - timedelta(seconds=settings.MUSTER_STALE_AFTER_S + 1))
    assert claim() == []


def test_an_attempt_that_breaks_a_step_does_not_stop_the_others(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    poison, healthy = fleet.job(), fleet.job()
    cycle.run_once()
    done: list[str] = []

    def step(view: View, _gateway: object) -> None:
        if view.job == poison:
            raise KeyError("a fault of ours")
        done.append(view.job.uid)

    monkeypatch.setitem(reconcile.STEPS_OF_WORKLOAD, "job", dict.fromkeys(Step, step))
    reconcile.reconcile_due()

    assert done == [healthy.uid]
    broken = poison.attempts.get()
    assert broken.claimed_until is None
    assert broken.due_at > clock.now() + timedelta(seconds=10)


def test_a_pass_that_takes_too_long_hands_back_what_it_did_not_reach(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fleet.job()
    cycle.run_once()
    monkeypatch.setattr(limits, "PASS_S", -1.0)

    reconcile.reconcile_due()

    assert Attempt.objects.filter(claimed_until=None, step=Step.PLANNED).count() == 3


def test_a_cluster_that_does_not_answer_costs_one_time_out_a_pass(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        fleet.job()
    cycle.run_once()
    tried: list[str] = []
    create = start.create

    def counted(view: View, gateway: object) -> None:
        tried.append(view.job.uid)
        create(view, gateway)  # type: ignore[arg-type]

    monkeypatch.setitem(reconcile.STEPS_OF_WORKLOAD, "job", {**reconcile.GANG_STEPS, Step.PLANNED: counted})
    Job.objects.update(spec=_spec())
    reconcile.reconcile_due()

    assert len(tried) == 1
    assert Attempt.objects.filter(step=Step.PLANNED, claimed_until=None).count() == 3


@transaction.atomic
def _say_and_advance(view: View) -> None:
    Job.objects.update(outcome_message="by the slow one")
    advance(view, due_s=0)


def _spec() -> dict[str, object]:
    return {
        "name": "train",
        "team": "team",
        "kind": "training",
        "image": "example.org/train:1",
        "gpus_per_worker": 1,
    }
