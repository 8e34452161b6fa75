"""XIDs of exporters: a node's fault stops the run that has the GPU, and a program's own doing blames no node."""

from datetime import timedelta
from typing import Any

import pytest

from clusters.models import Cluster, Node, NodeEvent, NodeFault
from clusters.selectors.trouble import fault_sentence, frequent
from jobs.models import Attempt, Incident, Job
from portal.core import clock
from tests.dispatch.scrape import scrape
from tests.dispatch.stage import Stage
from tests.dispatch.test_faults import again, gpus, running

State = Job.State
Kind = NodeFault.Kind
EVERY_XID_OF_PROGRAMS = (13, 31, 43, 45, 68, 109)


@pytest.fixture(autouse=True)
def _exporters(stage: Stage) -> Any:
    Cluster.objects.update(exporter_url=stage.simulated.exporter)
    yield
    for number in range(4):
        for index in range(8):
            stage.simulated.control("DELETE", f"/simulated/gpus/node-{number}/{index}")


def xid(stage: Stage, node: str, code: int, index: int = 0) -> None:
    """What the GPU reports last, from now on."""
    stage.simulated.control("PUT", f"/simulated/gpus/{node}/{index}", {"xid": code})


def holding(stage: Stage, job: Job) -> tuple[str, int]:
    """Node and index of a GPU that the exporters say the job's pod has."""
    pod = next(pod for pod in stage.pods() if pod["metadata"]["name"].startswith(job.attempts.get().object_name))
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    rows = [row for row in stage.simulated.metrics(node).splitlines() if f'pod="{name}"' in row and "GPU_UTIL" in row]
    return node, int(rows[0].partition('gpu="')[2].partition('"')[0])


def settle(stage: Stage) -> None:
    for _ in range(5):
        stage.turn()


def test_a_critical_xid_is_seen_by_the_next_scrape_and_its_gang_starts_elsewhere(stage: Stage) -> None:
    job, hurt = running(stage)
    scrape()
    assert not NodeFault.objects.exists()

    xid(stage, hurt.name, 79, index=3)
    scrape()
    fault = NodeFault.objects.get()
    assert (fault.node_id, fault.kind, fault.cleared_at) == (hurt.pk, Kind.XID, None)
    assert fault_sentence(fault) == "GPU 3 reported XID 79 (the GPU has fallen off the bus)"
    second = again(stage, job)

    assert hurt.pk not in second.allocations.values_list("node_id", flat=True)
    assert job.attempts.get(number=1).stop_code == Job.Outcome.NODE_LOST
    incident = Incident.objects.get()
    assert (incident.kind, incident.node_id, incident.fault, incident.gpus) == (Kind.XID, hurt.pk, fault, 16)
    assert incident.message == f"node {hurt.name} reports XID 79 of GPU 3"
    assert [each["node"] for each in job.exclusions] == [hurt.pk]
    line = NodeEvent.objects.get(node=hurt, kind=NodeEvent.Kind.FAULT)
    assert line.detail == {"what": "XID 79", "gpu": 3}


def test_an_xid_that_is_the_programs_own_doing_blames_no_node(stage: Stage) -> None:
    job, node = running(stage)

    for code in EVERY_XID_OF_PROGRAMS:
        xid(stage, node.name, code)
        scrape()
    settle(stage)

    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (State.RUNNING, 1)
    assert not NodeFault.objects.exists()
    assert not Node.objects.get(pk=node.pk).is_closed


def test_the_node_is_closed_while_it_offers_the_broken_gpu_and_open_once_it_does_not(stage: Stage) -> None:
    xid(stage, "node-1", 79, index=7)
    scrape()
    node = Node.objects.get(name="node-1")
    assert node.is_faulty
    assert node.is_closed

    gpus(stage, node, 7)
    stage.until(lambda: not Node.objects.get(pk=node.pk).is_faulty, "the plug-in has taken the GPU away")
    gpus(stage, node, 8)
    stage.until(lambda: Node.objects.get(pk=node.pk).is_faulty, "the GPU is offered again")

    xid(stage, "node-1", 0, index=7)
    scrape()
    assert not Node.objects.get(pk=node.pk).is_faulty
    assert NodeFault.objects.get().cleared_at is not None
    assert NodeEvent.objects.filter(node=node, kind=NodeEvent.Kind.MENDED).exists()


def test_an_xid_of_a_program_that_follows_a_fault_does_not_mend_it(stage: Stage) -> None:
    """The exporter shows the last one alone, and programs that lose their GPU report more."""
    for code in (79, 45):
        xid(stage, "node-1", code)
        scrape()

    assert NodeFault.objects.get().cleared_at is None


def test_a_scrape_that_shows_the_same_again_writes_nothing(stage: Stage) -> None:
    xid(stage, "node-1", 79)
    for _ in range(3):
        scrape()

    assert NodeFault.objects.count() == 1
    assert NodeEvent.objects.filter(kind=NodeEvent.Kind.FAULT).count() == 1


def test_only_the_run_that_has_the_gpu_is_stopped(stage: Stage) -> None:
    first, second = (stage.submit(gpus_per_worker=4) for _ in range(2))
    for job in (first, second):
        stage.until_state(job, State.RUNNING)
    assert len(set(stage.bound())) == 1, "both stand on one node"

    node, index = holding(stage, first)
    xid(stage, node, 48, index)
    scrape()
    again(stage, first)
    settle(stage)

    second.refresh_from_db()
    assert (second.state, second.attempts.count()) == (State.RUNNING, 1)


def test_only_the_replica_that_has_the_gpu_moves(stage: Stage) -> None:
    service = stage.serve(2)
    stage.until_state(service, State.RUNNING)
    attempt = service.attempts.get()
    stage.until(lambda: attempt.allocations.exclude(pod_uid="").count() == 2, "both have their places")
    before = set(attempt.allocations.values_list("pod_uid", flat=True))
    node, index = holding(stage, service)

    xid(stage, node, 79, index)
    scrape()
    stage.until(lambda: Incident.objects.exists() and len(stage.bound()) == 2, "one replica moved")

    assert Incident.objects.get().gpus == 1
    kept = attempt.allocations.filter(released_at=None, pod_uid__in=before)
    stage.until(lambda: kept.count() == 1, "the other one serves on")


def test_what_comes_after_the_fault_is_not_stopped_for_it(stage: Stage) -> None:
    job, node = running(stage)
    xid(stage, node.name, 79)
    Attempt.objects.update(looked_at=clock.now())
    NodeFault.objects.create(
        node=node,
        node_uid=node.uid,
        kind=Kind.XID,
        subject="GPU-old 79",
        detail={"gpu": 5, "xid": 79},
        detected_at=job.attempts.get().allocations.first().made_at - timedelta(seconds=5),  # type: ignore[union-attr]
        acts_at=clock.now(),
    )
    settle(stage)

    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_a_lesser_xid_stops_nobody_and_explains_the_failure_that_follows(stage: Stage) -> None:
    """It is no critical one, and no program's own: the run goes on, and if it fails, its owner pays no retry."""
    job, hurt = running(stage, backoff_limit=0, env={"SIM_RUN_S": "60", "SIM_EXIT_CODE": "1"})

    xid(stage, hurt.name, 62)
    scrape()
    fault = NodeFault.objects.get()
    assert fault.acts_at is None
    assert not Node.objects.get(pk=hurt.pk).is_closed
    settle(stage)
    job.refresh_from_db()
    assert job.state == State.RUNNING

    stage.until(lambda: job.attempts.filter(number=2).exists(), "it failed, and starts again")
    job.refresh_from_db()
    assert job.attempts.get(number=1).stop_node_id == hurt.pk
    assert Incident.objects.get().kind == Kind.XID


def test_xids_of_one_moment_count_as_one_fault_and_three_of_different_hours_are_frequent(stage: Stage) -> None:
    """An NVLink error shows on all GPUs of a node at once: that is one breakdown."""
    for index in range(8):
        xid(stage, "node-2", 74, index)
    scrape()
    node = Node.objects.get(name="node-2")
    assert NodeFault.objects.count() == 8
    assert frequent([node.pk], clock.now()) == []

    for number, fault in enumerate(NodeFault.objects.order_by("pk")[:2], start=1):
        NodeFault.objects.filter(pk=fault.pk).update(detected_at=clock.now() - timedelta(hours=number))
    assert [count for _node, count in frequent([node.pk], clock.now())] == [3]


def test_a_node_that_left_takes_its_xids_along(stage: Stage) -> None:
    xid(stage, "node-3", 79)
    scrape()
    body = stage.simulated.request("GET", "/api/v1/nodes/node-3")[1]
    assert stage.simulated.request("DELETE", "/api/v1/nodes/node-3")[0] == 200
    stage.until(lambda: NodeFault.objects.filter(cleared_at=None).count() == 0, "the fault is over with its node")

    xid_free = {
        "metadata": {"name": "node-3", "labels": body["metadata"]["labels"]},
        "spec": {},
        "status": {key: body["status"][key] for key in ("capacity", "allocatable", "conditions", "addresses")},
    }
    assert stage.simulated.request("POST", "/api/v1/nodes", xid_free)[0] == 201
    stage.until(lambda: Node.objects.get(name="node-3").gone_at is None, "the node is back")
    assert not Node.objects.get(name="node-3").is_faulty
