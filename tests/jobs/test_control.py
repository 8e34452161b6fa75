"""What people do to their jobs, and what the driver must not overlook of it."""

import threading

import pytest
from django.db import connection, transaction

from jobs.dispatch import stop
from jobs.dispatch.progress import advance
from jobs.dispatch.view import View, load_views
from jobs.engine import cycle
from jobs.jobspec.checks import LABELS_MAX
from jobs.models import Attempt, Job
from jobs.services import control, selection
from portal.core import clock
from portal.core.audit import SYSTEM, Actor
from portal.core.errors import DomainError
from portal.core.models import AuditEvent
from tests.factories import make_user
from tests.jobs.fleet import Fleet

pytestmark = pytest.mark.django_db(transaction=True)

State = Job.State
Step = Attempt.Step
BOB = Actor("bob")


def admitted(fleet: Fleet, **fields: object) -> Job:
    job = fleet.job(**fields)
    cycle.run_once()
    job.refresh_from_db()
    assert job.state == State.ADMITTED
    return job


def claimed(job: Job) -> View:
    """What a worker has read before somebody else acts."""
    attempts = list(Attempt.objects.filter(job=job).select_related("job__team", "job__queue", "cluster"))
    (view,) = load_views(attempts)
    return view


def test_a_job_that_only_waits_is_cancelled_at_once(fleet: Fleet) -> None:
    job = fleet.job()

    control.cancel_job(actor=BOB, job=job)

    job.refresh_from_db()
    assert (job.state, job.outcome_code, job.cancelled_by) == (State.CANCELLED, "cancelled", "bob")
    assert job.finished_at is not None
    assert AuditEvent.objects.filter(action="job.cancel").count() == 1


def test_a_job_that_holds_gpus_is_marked_and_its_attempt_is_woken(fleet: Fleet) -> None:
    job = admitted(fleet)
    Attempt.objects.update(due_at=clock.now().replace(year=2100))

    control.cancel_job(actor=BOB, job=job)

    job.refresh_from_db()
    assert (job.state, job.cancelled_by, job.outcome_code) == (State.ADMITTED, "bob", "")
    assert job.cancel_requested_at is not None
    assert Attempt.objects.get().due_at <= clock.now()


def test_cancelling_twice_is_cancelling_once(fleet: Fleet) -> None:
    job = admitted(fleet)

    control.cancel_job(actor=BOB, job=job)
    control.cancel_job(actor=Actor("alice"), job=job)

    job.refresh_from_db()
    assert job.cancelled_by == "bob"
    assert job.events.filter(code="cancel_requested").count() == 1


@pytest.mark.parametrize("state", Job.FINAL)
def test_what_is_over_cannot_be_cancelled(fleet: Fleet, state: State) -> None:
    job = fleet.job(state=state)

    with pytest.raises(DomainError, match="over already"):
        control.cancel_job(actor=BOB, job=job)

    job.refresh_from_db()
    assert job.state == state


def test_a_cancel_during_a_step_is_seen_at_once_and_not_after_the_next_look(fleet: Fleet) -> None:
    job = admitted(fleet)
    view = claimed(job)

    control.cancel_job(actor=BOB, job=job)
    advance(view, due_s=15)

    assert Attempt.objects.get().due_at <= clock.now()


def test_a_cancel_during_the_last_step_wins_over_another_try(fleet: Fleet) -> None:
    job = admitted(fleet)
    stop.begin(claimed(job), stop.again("the object was deleted on the cluster"))
    view = claimed(job)

    control.cancel_job(actor=BOB, job=job)
    stop.finish(view)

    job.refresh_from_db()
    assert (job.state, job.outcome_code) == (State.CANCELLED, "cancelled")
    assert fleet.held() == 0


def test_cancels_and_steps_at_once_never_deadlock(fleet: Fleet) -> None:
    """Both lock the attempt first, then the job."""
    errors: list[Exception] = []

    def race(act: object) -> None:
        try:
            act()  # type: ignore[operator]
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    for _turn in range(10):
        job = admitted(fleet)
        view = claimed(job)
        barrier = threading.Barrier(2)

        def step(view: View = view, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(timeout=20)
            stop.begin(view, stop.again("a pod was deleted on the cluster"))

        def cancel(job: Job = job, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(timeout=20)
            control.cancel_job(actor=SYSTEM, job=job)

        threads = [threading.Thread(target=race, args=(act,)) for act in (step, cancel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        stop.finish(claimed(job))
        job.refresh_from_db()
        assert job.state == State.CANCELLED

    assert errors == []


def test_a_service_is_scaled_and_its_attempt_is_woken(fleet: Fleet) -> None:
    job = admitted(fleet, kind="inference", workload="deployment", workers=2, min_workers=1)
    Attempt.objects.update(due_at=clock.now().replace(year=2100))

    control.scale_service(actor=BOB, job=job, replicas=5)

    job.refresh_from_db()
    assert (job.workers, job.min_workers, job.gpus, job.spec["replicas"]) == (5, 1, 5, 5)
    assert Attempt.objects.get().due_at <= clock.now()


@pytest.mark.parametrize(("replicas", "code"), [(-1, "out_of_range"), (101, "out_of_range")])
def test_a_service_is_scaled_within_limits(fleet: Fleet, replicas: int, code: str) -> None:
    job = fleet.job(kind="inference", workload="deployment")

    with pytest.raises(DomainError) as refused:
        control.scale_service(actor=BOB, job=job, replicas=replicas)

    assert refused.value.code == code


def test_training_is_not_scaled_and_neither_is_what_is_over_or_changed(fleet: Fleet) -> None:
    with pytest.raises(DomainError, match="Only services"):
        control.scale_service(actor=BOB, job=fleet.job(), replicas=2)
    over = fleet.job(kind="inference", workload="deployment", state=State.CANCELLED)
    with pytest.raises(DomainError) as refused:
        control.scale_service(actor=BOB, job=over, replicas=2)
    assert refused.value.code in ("stale", "already_over")
    changed = fleet.job(kind="inference", workload="deployment")
    Job.objects.filter(pk=changed.pk).update(workers=9)
    with pytest.raises(DomainError) as refused:
        control.scale_service(actor=BOB, job=changed, replicas=2)
    assert refused.value.code == "stale"


def test_what_the_driver_does_meanwhile_keeps_nobody_from_scaling_or_labelling(fleet: Fleet) -> None:
    job = fleet.job(kind="inference", workload="deployment")
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING, version=job.version + 5)

    control.scale_service(actor=BOB, job=job, replicas=2)
    control.label_job(actor=BOB, job=job, labels={"stage": "canary"})

    job.refresh_from_db()
    assert (job.workers, job.labels["stage"]) == (2, "canary")


def test_a_scale_that_is_refused_leaves_no_trace(fleet: Fleet) -> None:
    job = fleet.job(kind="inference", workload="deployment")
    Job.objects.filter(pk=job.pk).update(workers=9)

    with pytest.raises(DomainError), transaction.atomic():
        control.scale_service(actor=BOB, job=job, replicas=2)

    assert not AuditEvent.objects.filter(action="job.scale").exists()


def test_labels_are_merged_and_an_empty_value_takes_one_away(fleet: Fleet) -> None:
    job = fleet.job(labels={"stage": "dev", "owner": "bob"})

    control.label_job(actor=BOB, job=job, labels={"stage": "", "run": "7"})

    job.refresh_from_db()
    assert job.labels == {"owner": "bob", "run": "7"}


@pytest.mark.parametrize("there_are", [LABELS_MAX, LABELS_MAX + 8])
def test_a_full_job_gets_no_further_label_and_loses_any(fleet: Fleet, there_are: int) -> None:
    job = fleet.job(labels={f"k{number}": "v" for number in range(there_are)})

    with pytest.raises(DomainError) as refused:
        control.label_job(actor=BOB, job=job, labels={"one": "more"})
    control.label_job(actor=BOB, job=job, labels={"k0": ""})

    assert (refused.value.code, refused.value.field) == ("too_many", "labels")
    job.refresh_from_db()
    assert len(job.labels) == there_are - 1


def test_acts_on_many_say_why_some_were_refused(fleet: Fleet) -> None:
    over = [fleet.job(state=State.CANCELLED) for _each in range(4)]
    jobs = [*over, over[0], fleet.job()]

    tally = selection.each(
        jobs, user=make_user(is_superuser=True), roles={}, act=lambda job: control.cancel_job(actor=BOB, job=job)
    )

    assert (tally.done, tally.not_allowed, tally.refused) == (1, 0, 5)
    assert tally.reasons == tuple(f"{job.full_name} is over already." for job in over[:3])


def test_a_service_that_is_being_cancelled_is_not_scaled(fleet: Fleet) -> None:
    job = admitted(fleet, kind="inference", workload="deployment")
    control.cancel_job(actor=BOB, job=job)
    job.refresh_from_db()

    with pytest.raises(DomainError) as refused:
        control.scale_service(actor=BOB, job=job, replicas=3)

    assert (refused.value.code, refused.value.status) == ("cancel_requested", 409)
    job.refresh_from_db()
    assert job.workers == 1
