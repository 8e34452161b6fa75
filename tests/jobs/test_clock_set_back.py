"""Our own clock is set back or forward by two hours, or one host's is off: work goes on, and no limit is stretched."""

from datetime import timedelta

import pytest

from clusters.models import Cluster
from clusters.selectors.capacity import is_stale, stale_cluster_ids
from jobs.dispatch.progress import FencedOffError, advance
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock, lease
from portal.core.models import Lease
from tests.jobs.fleet import Fleet, claim
from tests.turned_clock import Watch

pytestmark = pytest.mark.django_db(transaction=True)

TWO_HOURS = timedelta(hours=2)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def set_back(watch: Watch) -> None:
    watch.offset = -TWO_HOURS
    Cluster.objects.update(heard_at=watch.now())  # the watcher goes on hearing


def test_an_attempt_that_was_never_looked_at_is_due_at_once(watch: Watch, attempt: Attempt) -> None:
    set_back(watch)

    assert [view.attempt for view in claim()] == [attempt]


def test_an_attempt_that_waits_for_its_next_look_is_looked_at_now_and_then_waits_again(
    watch: Watch, attempt: Attempt
) -> None:
    (view,) = claim()
    advance(view, due_s=15)
    assert claim() == []

    set_back(watch)
    (view,) = claim()
    advance(view, due_s=15)

    assert claim() == []


def test_a_claim_from_before_is_taken_over_and_its_worker_changes_nothing(watch: Watch, attempt: Attempt) -> None:
    (slow,) = claim()
    set_back(watch)

    (fast,) = claim()
    advance(fast, due_s=15)
    with pytest.raises(FencedOffError):
        advance(slow, due_s=15)


def test_the_time_that_a_step_may_take_starts_anew_and_is_not_two_hours_longer(watch: Watch, attempt: Attempt) -> None:
    Attempt.objects.update(started_at=clock.now())
    set_back(watch)

    (view,) = claim()
    assert view.step_age_s == 0
    advance(view, due_s=0)

    attempt.refresh_from_db()
    assert attempt.step_at <= watch.now()
    assert attempt.started_at is not None
    assert attempt.started_at <= watch.now()


def test_an_attempt_that_has_not_started_does_not_start_by_it(attempt: Attempt) -> None:
    (view,) = claim()
    advance(view, due_s=0)

    attempt.refresh_from_db()
    assert attempt.started_at is None


def test_cycles_go_on_though_the_lease_of_a_dead_one_ends_in_two_hours(watch: Watch, fleet: Fleet) -> None:
    dead = lease.take("cycle", holder="dead", ttl_s=15)
    set_back(watch)
    fleet.job()

    assert cycle.run_once() is not None

    assert Job.objects.get().state == Job.State.ADMITTED
    assert not _writes(dead or 0)


def test_a_lease_that_runs_is_taken_by_nobody_whose_clock_is_a_little_late(watch: Watch) -> None:
    assert lease.take("cycle", holder="one", ttl_s=15)
    watch.offset = timedelta(seconds=-30)

    assert lease.take("cycle", holder="two", ttl_s=15) is None


def test_a_cluster_that_was_heard_of_in_the_future_is_not_believed_to_be_there(watch: Watch, fleet: Fleet) -> None:
    watch.offset = -TWO_HOURS

    assert stale_cluster_ids(watch.now()) == {fleet.cluster.pk}
    assert is_stale(Cluster.objects.get(), watch.now())


def _writes(token: int) -> bool:
    return Lease.objects.filter(name="cycle", token=token).exists()
