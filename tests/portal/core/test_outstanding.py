"""At most one message of a loop waits, and a clock that is turned neither keeps the next one back nor sends many."""

from datetime import timedelta

import pytest

from portal.core import enqueue
from portal.core.models import OutstandingTask
from tests.turned_clock import Watch

pytestmark = pytest.mark.django_db

TWO_HOURS = timedelta(hours=2)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def test_a_message_that_was_lost_before_the_clock_was_set_back_is_sent_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = sending(monkeypatch)
    assert enqueue.send_once("jobs.tasks.run_cycle")
    assert not enqueue.send_once("jobs.tasks.run_cycle")

    watch.offset = -TWO_HOURS
    assert enqueue.send_once("jobs.tasks.run_cycle")
    assert not enqueue.send_once("jobs.tasks.run_cycle")

    assert len(sent) == 2
    assert OutstandingTask.objects.get().sent_at <= watch.now()  # type: ignore[operator]


def test_a_clock_set_forward_makes_no_burst_of_messages(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sending(monkeypatch)
    enqueue.send_once("jobs.tasks.run_cycle")
    watch.offset = TWO_HOURS

    for _ in range(5):
        enqueue.send_once("jobs.tasks.run_cycle")

    assert len(sent) == 2


def sending(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would go to the broker."""
    sent: list[str] = []

    def send(task: str) -> bool:
        sent.append(task)
        return True

    monkeypatch.setattr(enqueue, "_send", send)
    return sent
