"""A node is emptied for its maintenance: nothing new at once, nothing at all at the deadline, and no retry is spent."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from clusters.models import Node, NodeEvent, NodeMaintenance, ObservedPod
from clusters.services.maintenance import ask_for_maintenance, end_maintenance
from clusters.services.quarantine import quarantine_node
from jobs.dispatch.drain import note_drained_nodes
from jobs.models import Attempt, Incident, Job
from jobs.selectors.maintenance import effects_on
from portal.core import clock
from portal.core.audit import SYSTEM
from portal.core.errors import DomainError, InvalidInputError
from portal.core.models import AuditEvent
from tests.dispatch.stage import Stage
from tests.factories import make_user

State = Job.State
Maintenance = NodeMaintenance.State
LATER = timedelta(hours=1)


def running(stage: Stage, **fields: object) -> tuple[Job, Node]:
    job = stage.submit(**{"workers": 2, **fields})
    stage.until_state(job, State.RUNNING)
    return job, job.attempts.get().allocations.get(rank=1).node


def state_of(node: Node) -> str:
    return NodeMaintenance.objects.get(node=node).state(clock.now())


def drained(stage: Stage, node: Node) -> None:
    stage.until(note_drained_nodes, "the node is empty")
    assert state_of(node) == Maintenance.DONE


def test_until_the_deadline_what_runs_runs_on_and_nothing_new_comes(stage: Stage) -> None:
    job, node = running(stage)

    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=clock.now() + LATER, reason="new fans")
    others = [stage.submit() for _ in range(3)]  # two places are left
    stage.until(lambda: sum(other.attempts.exists() for other in others) == 2, "two of them start")
    for _ in range(5):
        stage.turn()

    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert state_of(node) == Maintenance.WAITING
    assert note_drained_nodes() == 0
    assert node.allocations.exclude(attempt__job=job).count() == 0


def test_at_the_deadline_gangs_are_stopped_whole_and_start_elsewhere(stage: Stage) -> None:
    job, node = running(stage, backoff_limit=0)

    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=None)
    drained(stage, node)
    stage.until_state(job, State.RUNNING)

    first, second = job.attempts.order_by("number")
    assert first.stop_code == Job.Outcome.MAINTENANCE
    assert node.pk not in second.allocations.values_list("node_id", flat=True)
    # It is nobody's fault, and the node is as good as any afterwards.
    assert not Incident.objects.exists()
    assert job.exclusions == []
    lines = NodeEvent.objects.filter(node=node).order_by("pk").values_list("kind", flat=True)
    assert list(lines)[-2:] == ["maintenance", "drained"]


def test_an_empty_node_is_ready_at_once_and_stays_closed_until_it_is_opened(stage: Stage) -> None:
    node = Node.objects.order_by("name").first()
    assert node is not None
    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=clock.now() + LATER)
    drained(stage, node)
    job = stage.submit(workers=4)
    for _ in range(5):
        stage.turn()
    job.refresh_from_db()
    assert (job.state, job.reason_code) == (State.QUEUED, "cordoned")

    end_maintenance(actor=SYSTEM, node=node)

    stage.until_state(job, State.RUNNING)
    assert state_of(node) == Maintenance.ENDED
    assert [each.action for each in AuditEvent.objects.filter(object_type="node").order_by("pk")] == [
        "node.maintenance_asked",
        "node.maintenance_ended",
    ]


def test_a_cancelled_maintenance_stops_nobody(stage: Stage) -> None:
    job, node = running(stage)
    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=clock.now() + LATER)

    end_maintenance(actor=SYSTEM, node=node)
    for _ in range(3):
        stage.turn()

    job.refresh_from_db()
    node.refresh_from_db()
    assert (job.state, node.is_closed, state_of(node)) == (State.RUNNING, False, Maintenance.CANCELLED)
    with pytest.raises(DomainError) as refusal:
        end_maintenance(actor=SYSTEM, node=node)
    assert refusal.value.code == "not_in_maintenance"


def test_asking_again_moves_the_deadline_of_the_one_maintenance(stage: Stage) -> None:
    job, node = running(stage)
    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=clock.now() + LATER)

    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=None)

    assert NodeMaintenance.objects.count() == 1
    drained(stage, node)
    with pytest.raises(DomainError) as refusal:
        ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=None)
    assert refusal.value.code == "in_maintenance"
    job.refresh_from_db()
    assert job.attempts.first() is not None


def test_a_deadline_in_a_year_is_refused(stage: Stage) -> None:
    node = Node.objects.order_by("name").first()
    assert node is not None
    with pytest.raises(InvalidInputError) as refusal:
        ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=clock.now() + timedelta(days=365))
    assert list(refusal.value.problems) == ["deadline_at"]
    node.refresh_from_db()
    assert not node.is_closed


def test_a_service_moves_its_replicas_one_by_one_and_never_stops(stage: Stage) -> None:
    service = stage.serve(3, gpus_per_worker=8)
    stage.until(lambda: _ready(service) == 3, "three replicas serve")
    node = service.attempts.get().allocations.exclude(pod_uid="").order_by("rank").first().node  # type: ignore[union-attr]
    least = [3]

    def moved() -> bool:
        least.append(_ready(service))
        return bool(note_drained_nodes())

    ask_for_maintenance(actor=SYSTEM, node=node, deadline_at=None)
    stage.until(moved, "the node is empty")
    stage.until(lambda: _ready(service) == 3, "three replicas serve again")

    assert min(least) >= 2
    assert service.attempts.count() == 1
    assert node.name not in stage.bound()


def _ready(service: Job) -> int:
    return ObservedPod.objects.filter(run=service.uid, is_ready=True, is_deleting=False, gone_at=None).count()


def test_the_page_tells_who_is_affected_and_strangers_see_the_team_alone(stage: Stage) -> None:
    job, node = running(stage)
    ends_before = stage.submit(gpus_per_worker=8, max_runtime_s=600)
    stage.until_state(ends_before, State.RUNNING)
    other = ends_before.attempts.get().allocations.get().node
    now = clock.now()

    (mine,) = effects_on(node, stage.owner, now + LATER, now)
    (theirs,) = effects_on(node, make_user("stranger"), now + LATER, now)
    (ending,) = effects_on(other, stage.owner, now + LATER, now)

    assert (mine.label, mine.gpus) == (job.full_name, 8)
    assert mine.what == "is stopped whole, all 16 GPUs, and queues again elsewhere"
    assert mine.lost_gpu_hours is not None
    assert 15.9 < mine.lost_gpu_hours < 16.6
    assert (theirs.label, theirs.url) == (stage.team.slug, "")
    assert (ending.what, ending.lost_gpu_hours) == ("reaches its time limit before that", None)


def test_the_dialog_tells_the_loss_at_the_deadline_that_it_offers(stage: Stage, client: Client) -> None:
    _job, node = running(stage)
    client.force_login(make_user("root", is_superuser=True))

    page = client.get(f"/clusters/{stage.cluster.name}/nodes/{node.name}/").content.decode()

    # All 16 GPUs for the 60 minutes of the form.
    assert re.search(r"1[56]\.\d GPU-hours are lost", page)


def test_a_quarantined_node_gets_nothing_new_and_what_runs_there_runs_on(stage: Stage) -> None:
    job, node = running(stage)

    quarantine_node(actor=SYSTEM, node=node, reason="ECC errors")
    waits = stage.submit(workers=3)
    for _ in range(5):
        stage.turn()

    waits.refresh_from_db()
    job.refresh_from_db()
    assert (job.state, waits.state) == (State.RUNNING, State.QUEUED)
    assert job.attempts.get().step == Attempt.Step.RUNNING
