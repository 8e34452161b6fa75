"""The state column has one writer, which knows every move."""

import threading
from itertools import product

import pytest
from django.db import connection

from jobs import transitions
from jobs.models import Job, JobEvent
from jobs.transitions import ALLOWED, Event
from tests.jobs.fleet import make_fleet

State = Job.State
MOVES = [(frm, to) for frm, targets in ALLOWED.items() for to in targets]
NO_MOVES = sorted(set(product(State, State)) - set(MOVES))


@pytest.mark.django_db
@pytest.mark.parametrize(("frm", "to"), sorted(MOVES))
def test_an_allowed_move_is_made_once_and_told_once(frm: State, to: State) -> None:
    job = make_fleet(nodes=1).job(state=frm)

    assert transitions.move(job, frm=frm, to=to, event=Event("moved", {"n": 1}, "alice"), outcome_message="why")

    stored = Job.objects.get(pk=job.pk)
    assert (stored.state, stored.version, stored.outcome_message) == (to, job.version + 1, "why")
    assert list(JobEvent.objects.values_list("code", "data", "actor")) == [("moved", {"n": 1}, "alice")]
    assert not transitions.move(job, frm=frm, to=to, event=Event("moved"))
    assert JobEvent.objects.count() == 1


@pytest.mark.parametrize(("frm", "to"), NO_MOVES)
def test_a_move_that_no_job_can_make_is_refused(frm: State, to: State) -> None:
    with pytest.raises(ValueError, match="never goes"):
        transitions.move(Job(pk=1), frm=frm, to=to, event=Event("moved"))


def test_final_states_have_no_way_out() -> None:
    assert all(not ALLOWED[state] for state in Job.FINAL)
    assert set(ALLOWED) == set(State)


@pytest.mark.django_db
def test_a_move_from_a_state_that_is_past_changes_nothing() -> None:
    job = make_fleet(nodes=1).job(state=State.RUNNING)

    assert not transitions.move(job, frm=State.STARTING, to=State.RUNNING, event=Event("running"), exit_code=1)

    stored = Job.objects.get(pk=job.pk)
    assert (stored.state, stored.version, stored.exit_code) == (State.RUNNING, job.version, None)
    assert not JobEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_moves_at_once_one_is_made() -> None:
    job = make_fleet(nodes=1).job(state=State.RUNNING)
    barrier = threading.Barrier(8)
    made: list[bool] = []

    def move(to: State) -> None:
        try:
            barrier.wait(timeout=20)
            made.append(transitions.move(job, frm=State.RUNNING, to=to, event=Event(str(to))))
        finally:
            connection.close()

    targets = [State.STOPPING, State.SUCCEEDED, State.FAILED, State.STOPPING] * 2
    threads = [threading.Thread(target=move, args=(to,)) for to in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(made) == [False] * 7 + [True]
    assert JobEvent.objects.count() == 1
