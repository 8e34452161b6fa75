"""The cycle on real rows: what is admitted, what waits and why, and what the guards refuse."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from clusters.models import Cluster, Dispatch, Node, NodeAccelerator
from jobs.engine import apply, cycle, snapshot
from jobs.models import Allocation, Attempt, Cycle, Decision, Job
from jobs.scheduler.decide import decide
from jobs.scheduler.types import Workload
from jobs.services import control, holding
from portal.core import clock, lease
from portal.core.audit import SYSTEM
from quotas.models import Quota, QuotaUsage
from tests.jobs.fleet import Fleet, make_fleet

pytestmark = pytest.mark.django_db(transaction=True)

State = Job.State


def test_a_gang_that_fits_gets_a_place_for_every_rank(fleet: Fleet) -> None:
    job = fleet.job(workers=2, gpus_per_worker=8, topology_mode="require", topology_level="rack")

    cycle.run_once()

    job.refresh_from_db()
    attempt = job.attempts.get()
    assert (job.state, attempt.step, attempt.level) == (State.ADMITTED, Attempt.Step.PLANNED, "rack")
    assert sorted(attempt.allocations.values_list("rank", "gpus")) == [(0, 8), (1, 8)]
    assert fleet.held_by_node() == {"n0": 8, "n1": 8}
    assert QuotaUsage.objects.get(queue=fleet.queue).used == 16


def test_a_gang_is_dispatched_as_its_cluster_can_and_a_service_by_gates(fleet: Fleet) -> None:
    Cluster.objects.update(dispatch=Dispatch.BORN_PINNED)
    gang = fleet.job(workers=2)
    service = fleet.job(kind="inference", workload="deployment")

    cycle.run_once()

    assert gang.attempts.get().dispatch == Dispatch.BORN_PINNED
    assert service.attempts.get().dispatch == Dispatch.GATES


def test_an_attempt_keeps_whether_its_cluster_bound_gangs_whole_when_its_place_was_decided(fleet: Fleet) -> None:
    Cluster.objects.update(has_pod_groups=True)
    gang = fleet.job(workers=2)

    cycle.run_once()
    Cluster.objects.update(has_pod_groups=False)

    assert gang.attempts.get().is_grouped


def test_a_gang_that_does_not_fit_holds_nothing_and_says_why(fleet: Fleet) -> None:
    job = fleet.job(workers=3, gpus_per_worker=8, topology_mode="require", topology_level="rack")
    fleet.job(workers=1, gpus_per_worker=8)

    cycle.run_once()

    job.refresh_from_db()
    assert job.state == State.QUEUED
    assert job.reason_code == "never_fits"
    assert not job.attempts.exists()
    assert fleet.held() == 8


def test_lowering_a_quota_changes_the_next_stored_decision(fleet: Fleet) -> None:
    fleet.job(gpus_per_worker=8)
    cycle.run_once()
    second = fleet.job(gpus_per_worker=8, workers=4)
    cycle.run_once()
    second.refresh_from_db()
    assert second.reason_code == "capacity"

    Quota.objects.filter(queue=fleet.queue).update(nominal=32)
    cycle.run_once()

    latest = Decision.objects.filter(job=second).latest("pk")
    second.refresh_from_db()
    assert (latest.code, latest.numbers["nominal"], latest.numbers["used"]) == ("quota", 32, 8)
    assert second.reason_code == "quota"


def test_an_unchanged_reason_is_not_stored_again(fleet: Fleet) -> None:
    job = fleet.job(workers=5, gpus_per_worker=8)

    cycle.run_once()
    cycle.run_once()

    assert Decision.objects.filter(job=job).count() == 1


def test_nothing_is_placed_on_a_cluster_that_was_not_heard_of(fleet: Fleet, settings: Settings) -> None:
    job = fleet.job(gpus_per_worker=8)
    silent = clock.now() - timedelta(seconds=settings.MUSTER_STALE_AFTER_S + 5)
    Cluster.objects.update(heard_at=silent)

    cycle.run_once()

    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.QUEUED, "cluster_stale")


@pytest.mark.parametrize(("version", "is_placed"), [("v1.29.14", False), ("v1.30.0", True), ("", True)])
def test_nothing_is_placed_on_a_cluster_whose_kubernetes_is_too_old(
    fleet: Fleet, version: str, is_placed: bool
) -> None:
    job = fleet.job(gpus_per_worker=8)
    Cluster.objects.update(kubernetes_version=version)

    cycle.run_once()

    job.refresh_from_db()
    assert (job.state == State.ADMITTED, job.reason_code) == (is_placed, "" if is_placed else "cluster_too_old")


@pytest.mark.parametrize(("change", "code"), [({"is_cordoned": True}, "cordoned"), ({"is_ready": False}, "not_ready")])
def test_a_closed_node_takes_nothing(fleet: Fleet, change: dict[str, bool], code: str) -> None:
    job = fleet.job(workers=4, gpus_per_worker=8)
    Node.objects.filter(name="n3").update(**change)

    cycle.run_once()

    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.QUEUED, code)


def test_what_others_use_is_not_free(fleet: Fleet) -> None:
    job = fleet.job(gpus_per_worker=8)
    NodeAccelerator.objects.update(foreign=1)

    cycle.run_once()

    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_a_second_cycle_leaves_when_the_lease_is_taken(fleet: Fleet) -> None:
    job = fleet.job()
    lease.take("cycle", holder="another", ttl_s=30)

    assert cycle.run_once() is None

    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_a_cycle_that_lost_its_lease_applies_nothing(fleet: Fleet) -> None:
    job = fleet.job()
    stale = lease.take("cycle", holder="slow", ttl_s=-1)
    assert stale is not None
    loaded = snapshot.load()
    outcome = decide(loaded.snapshot)
    lease.take("cycle", holder="fast", ttl_s=30)
    row = Cycle.objects.create(started_at=clock.now())

    assert apply.apply_outcome(row, loaded, outcome, stale) == 0

    job.refresh_from_db()
    assert job.state == State.QUEUED
    assert fleet.held() == 0


def test_a_job_cancelled_after_the_snapshot_is_not_admitted(fleet: Fleet) -> None:
    job = fleet.job()
    token = lease.take("cycle", holder="me", ttl_s=30)
    assert token is not None
    loaded = snapshot.load()
    outcome = decide(loaded.snapshot)

    control.cancel_job(actor=SYSTEM, job=job)
    apply.apply_outcome(Cycle.objects.create(started_at=clock.now()), loaded, outcome, token)

    job.refresh_from_db()
    assert job.state == State.CANCELLED
    assert not Allocation.objects.exists()
    assert fleet.held() == 0


def test_the_snapshot_reads_as_many_rows_as_there_are_in_a_fixed_number_of_queries(fleet: Fleet) -> None:
    with CaptureQueriesContext(connection) as few:
        snapshot.load()
    for _ in range(20):
        fleet.job()
    with CaptureQueriesContext(connection) as many:
        snapshot.load()

    assert len(many) == len(few)


def two_cycles_at_once() -> None:
    """Each sees one of the two jobs, as if the other had come too late, and both have decided before either applies."""
    barrier = threading.Barrier(2)
    workloads = snapshot.load().snapshot.workloads

    def run(workload: Workload) -> None:
        try:
            loaded = snapshot.load()
            outcome = decide(replace(loaded.snapshot, workloads=(workload,)))
            barrier.wait(timeout=20)
            token = lease.take("cycle", holder=str(threading.get_ident()), ttl_s=-1) or 0
            apply.apply_outcome(Cycle.objects.create(started_at=clock.now()), loaded, outcome, token)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(workload,)) for workload in workloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


def test_two_concurrent_cycles_never_exceed_a_quota_or_a_node() -> None:
    fleet = make_fleet(nodes=1, quota=8)
    jobs = [fleet.job(gpus_per_worker=8) for _ in range(2)]

    two_cycles_at_once()

    assert fleet.held() == 8
    assert QuotaUsage.objects.get(queue=fleet.queue).used == 8
    assert Job.objects.filter(pk__in=[job.pk for job in jobs], state=State.ADMITTED).count() == 1


def test_without_the_guards_two_concurrent_cycles_do_over_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above is known to be able to fail."""
    fleet = make_fleet(nodes=1, quota=8)
    for _ in range(2):
        fleet.job(gpus_per_worker=8)
    monkeypatch.setattr(holding, "hold", Allocation.objects.bulk_create)
    monkeypatch.setattr(lease, "hold_for_write", lambda *_: True)

    two_cycles_at_once()

    assert sum(Allocation.objects.values_list("gpus", flat=True)) == 16
