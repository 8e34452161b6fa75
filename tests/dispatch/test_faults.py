"""A node fails under a run: seen at once, stopped whole, started elsewhere, and written down with what it cost."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pytest_django import Settings

from clusters.models import Node, NodeFault, ObservedPod
from jobs.models import Attempt, Incident, Job
from jobs.selectors.documents import job_document
from jobs.selectors.standing import avoided_nodes
from portal.core import clock
from tests.dispatch.stage import Stage

State = Job.State
Kind = NodeFault.Kind
Outcome = Job.Outcome
MERGE = "application/merge-patch+json"


def running(stage: Stage, **fields: object) -> tuple[Job, Node]:
    """A gang of two that runs, and the node of its second rank."""
    job = stage.submit(**{"workers": 2, **fields})
    stage.until_state(job, State.RUNNING)
    return job, job.attempts.get().allocations.get(rank=1).node


def again(stage: Stage, job: Job) -> Attempt:
    """The second attempt, once it runs."""
    stage.until(lambda: job.attempts.filter(number=2, step=Attempt.Step.RUNNING).exists(), "the second attempt runs")
    job.refresh_from_db()
    return job.attempts.get(number=2)


def gpus(stage: Stage, node: Node, count: int) -> None:
    """So many GPUs the node's plug-in offers from now on."""
    stage.simulated.control("PUT", f"/simulated/nodes/{node.name}/gpus", {"allocatable": count})


def condition(stage: Stage, node: str, kind: str, status: str) -> None:
    """What a health daemon on the node writes: one condition more."""
    path = f"/api/v1/nodes/{node}"
    have = stage.simulated.request("GET", path)[1]["status"]["conditions"]
    mine = {"type": kind, "status": status, "reason": "XID", "message": "XID 79: GPU has fallen off the bus"}
    wanted = [each for each in have if each["type"] != kind] + [mine]
    code, answer = stage.simulated.request("PATCH", f"{path}/status", {"status": {"conditions": wanted}}, kind=MERGE)
    assert code == 200, answer


def delete(stage: Stage, node: Node) -> Callable[[], None]:
    """Take the node out of the cluster; what is returned makes another one of the same name."""
    path = f"/api/v1/nodes/{node.name}"
    body = stage.simulated.request("GET", path)[1]
    anew = {
        "metadata": {"name": node.name, "labels": body["metadata"]["labels"]},
        "spec": {},
        "status": {key: body["status"][key] for key in ("capacity", "allocatable", "conditions", "addresses")},
    }
    assert stage.simulated.request("DELETE", path)[0] == 200

    def make_anew() -> None:
        assert stage.simulated.request("POST", "/api/v1/nodes", anew)[0] == 201

    return make_anew


def reason_of(job: Job) -> Any:
    """What REST says the job waits for."""
    job.refresh_from_db()
    return job_document(job)["reason"]


def test_a_silent_node_is_seen_within_seconds_and_its_gang_starts_elsewhere(stage: Stage) -> None:
    job, lost = running(stage)

    failed_at = time.monotonic()
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/fail")
    stage.until_state(job, State.STOPPING)
    assert time.monotonic() - failed_at < 5

    fault = NodeFault.objects.get()
    assert (fault.node_id, fault.kind, fault.cleared_at) == (lost.pk, Kind.NOT_READY, None)
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/recover")
    second = again(stage, job)

    assert lost.pk not in second.allocations.values_list("node_id", flat=True)
    assert job.attempts.get(number=1).stop_code == Outcome.NODE_LOST
    (avoided,) = job.exclusions
    assert (avoided["node"], avoided["name"], avoided["why"]) == (lost.pk, lost.name, f"node {lost.name} is not ready")
    assert f"Not on node {lost.name} until" in " ".join(avoided_nodes(job))
    assert [each["node"] for each in job_document(job)["exclusions"]] == [lost.name]  # type: ignore[attr-defined]
    stage.until(lambda: NodeFault.objects.get().cleared_at, "the fault is over")


def test_a_run_that_waits_for_a_silent_node_says_who_can_end_the_wait(stage: Stage) -> None:
    job, lost = running(stage)
    stage.simulated.control("POST", f"/simulated/nodes/{lost.name}/fail")
    stage.until_state(job, State.STOPPING)
    stage.until(lambda: reason_of(job)["numbers"]["silent_nodes"] == (lost.name,), "only the silent node is awaited")

    reason = reason_of(job)
    assert reason["code"] == "awaiting_proof"
    assert f"Node {lost.name} does not answer" in reason["message"]
    assert "when an administrator deletes the node" in reason["message"]

    make_anew = delete(stage, lost)
    again(stage, job)
    assert job_document(job)["reason"] is None
    make_anew()


def test_a_node_that_is_deleted_and_made_anew_is_another_node(stage: Stage) -> None:
    job, lost = running(stage)
    make_anew = delete(stage, lost)
    make_anew()

    second = again(stage, job)

    assert lost.pk not in second.allocations.values_list("node_id", flat=True)
    incident = Incident.objects.get()
    assert incident.kind in (Kind.GONE, Kind.REPLACED)
    assert (incident.node_id, incident.gpus) == (lost.pk, 16)
    assert stage.held() == 16


def test_gpus_that_fall_away_under_a_gang_stop_it_and_idle_ones_stop_nobody(stage: Stage, settings: Settings) -> None:
    settings.MUSTER_FAULT_GRACE_S = 0.0
    job, hurt = running(stage)
    idle = Node.objects.exclude(pk__in=job.attempts.get().allocations.values("node")).first()
    assert idle is not None

    for node, left in ((idle, 7), (hurt, 7)):
        gpus(stage, node, left)
    second = again(stage, job)

    fault = NodeFault.objects.get()
    assert (fault.node_id, fault.kind, fault.subject) == (hurt.pk, Kind.DEVICES, "h100")
    assert (fault.detail["from"], fault.detail["to"]) == (8, 7)
    assert not {hurt.pk, idle.pk} & set(second.allocations.values_list("node_id", flat=True))
    gpus(stage, hurt, 8)
    stage.until(lambda: NodeFault.objects.get().cleared_at, "the GPUs are back")


def test_what_comes_to_a_node_after_it_lost_gpus_runs_there_until_it_loses_more(
    stage: Stage, settings: Settings
) -> None:
    settings.MUSTER_FAULT_GRACE_S = 0.0
    job, hurt = running(stage)
    gpus(stage, hurt, 6)
    again(stage, job)

    late = stage.submit(gpus_per_worker=6)
    stage.until_state(late, State.RUNNING)
    for _ in range(5):
        stage.turn()
    late.refresh_from_db()
    assert late.attempts.get().allocations.get().node_id == hurt.pk
    assert (late.state, Incident.objects.count()) == (State.RUNNING, 1)

    gpus(stage, hurt, 4)
    second = again(stage, late)
    assert second.allocations.get().node_id != hurt.pk
    assert NodeFault.objects.filter(node=hurt).count() == 2
    fault = NodeFault.objects.get(node=hurt, cleared_at=None)
    assert (fault.detail["from"], fault.detail["to"]) == (8, 4)
    gpus(stage, hurt, 8)
    stage.until(lambda: not NodeFault.objects.filter(cleared_at=None).exists(), "all GPUs are back")


def test_gpus_that_are_back_before_their_time_is_up_stop_nobody(stage: Stage) -> None:
    """A device plug-in that starts anew takes its GPUs along for some seconds; the pods run on."""
    job, node = running(stage)
    gpus(stage, node, 0)
    stage.until(lambda: NodeFault.objects.filter(kind=Kind.DEVICES).exists(), "the fault is seen")
    gpus(stage, node, 8)
    stage.until(lambda: NodeFault.objects.get().cleared_at, "the fault is over")

    NodeFault.objects.update(acts_at=clock.now() - timedelta(seconds=1))
    for _ in range(5):
        stage.turn()

    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (State.RUNNING, 1)
    assert not Incident.objects.exists()


def test_a_reported_xid_stops_the_gang_and_closes_the_node_until_it_is_mended(stage: Stage) -> None:
    job, hurt = running(stage)

    condition(stage, hurt.name, "SysLogsXIDError", "True")
    second = again(stage, job)

    incident = Incident.objects.get()
    assert (incident.kind, incident.node_id) == (Kind.CONDITION, hurt.pk)
    assert incident.fault is not None
    assert incident.fault.detail["message"] == "XID 79: GPU has fallen off the bus"
    assert hurt.pk not in second.allocations.values_list("node_id", flat=True)
    hurt.refresh_from_db()
    assert hurt.is_closed
    condition(stage, hurt.name, "SysLogsXIDError", "False")
    stage.until(lambda: not Node.objects.get(pk=hurt.pk).is_faulty, "the node is whole")


def test_a_condition_that_nobody_calls_a_fault_stops_nobody(stage: Stage) -> None:
    job, node = running(stage)

    condition(stage, node.name, "FrequentKubeletRestart", "True")
    stage.until(lambda: "FrequentKubeletRestart" in Node.objects.get(pk=node.pk).conditions, "it is seen")
    for _ in range(5):
        stage.turn()

    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert not NodeFault.objects.exists()


def test_a_fault_takes_none_of_the_users_retries(stage: Stage) -> None:
    job, hurt = running(stage, backoff_limit=0)

    condition(stage, hurt.name, "GpuUnhealthy", "True")
    again(stage, job)

    assert job.state == State.RUNNING


def test_an_incident_counts_what_was_computed_since_the_last_checkpoint(stage: Stage) -> None:
    job, hurt = running(stage)
    attempt = job.attempts.get()
    now = clock.now()
    Attempt.objects.filter(pk=attempt.pk).update(started_at=now - timedelta(hours=2))
    marked = (now - timedelta(minutes=30)).isoformat()
    pod = next(pod for pod in stage.pods() if pod["spec"]["nodeName"] != hurt.name)
    path = f"/api/v1/namespaces/{stage.namespace}/pods/{pod['metadata']['name']}"
    notes = {"metadata": {"annotations": {"muster.internal/checkpoint": marked}}}
    assert stage.simulated.request("PATCH", path, notes, kind=MERGE)[0] == 200
    stage.until(lambda: ObservedPod.objects.exclude(checkpoint_at=None).exists(), "the checkpoint is seen")

    condition(stage, hurt.name, "GpuUnhealthy", "True")
    stage.until(Incident.objects.exists, "the incident")

    incident = Incident.objects.get()
    assert incident.is_from_checkpoint
    assert incident.gpus == 16
    assert 16 * 1800 <= incident.lost_gpu_s <= 16 * 1860


def test_when_most_of_a_cluster_falls_silent_at_once_its_gangs_run_on(stage: Stage) -> None:
    """It is the way to the nodes that failed, then: their kubelets and pods are well."""
    job, _node = running(stage)
    for number in range(3):
        stage.simulated.control("POST", f"/simulated/nodes/node-{number}/fail")
    # Without a beat meanwhile, so that the driver sees all of them at once.
    stage.simulated.wait_for(lambda: NodeFault.objects.filter(cleared_at=None).count() == 3, "the silence is seen")
    for _ in range(5):
        stage.turn()

    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_a_replica_on_a_broken_node_comes_anew_elsewhere_and_the_others_serve_on(stage: Stage) -> None:
    service = stage.serve(2, gpus_per_worker=8)
    stage.until_state(service, State.RUNNING)
    attempt = service.attempts.get()
    stage.until(lambda: attempt.allocations.exclude(pod_uid="").count() == 2, "both have their places")
    hurt = attempt.allocations.get(rank=0).node

    condition(stage, hurt.name, "GpuUnhealthy", "True")
    stage.until(
        lambda: hurt.name not in stage.bound() and len(stage.bound()) == 2 and stage.held() == 16,
        "two replicas, none on the broken node",
    )

    service.refresh_from_db()
    assert service.attempts.count() == 1
    assert service.excluded_node_ids(clock.now()) == [hurt.pk]
    assert Incident.objects.get().gpus == 8


def test_an_exclusion_is_over_after_its_time(stage: Stage, settings: Settings) -> None:
    settings.MUSTER_EXCLUDE_S = 0.5
    job, hurt = running(stage, workers=4)
    condition(stage, hurt.name, "GpuUnhealthy", "True")
    stage.until(lambda: job.attempts.filter(number=1, step=Attempt.Step.ENDED).exists(), "the gang is stopped")
    condition(stage, hurt.name, "GpuUnhealthy", "False")

    second = again(stage, job)  # it needs every node

    assert hurt.pk in second.allocations.values_list("node_id", flat=True)
