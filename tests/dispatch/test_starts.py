"""From a held place to a gang that runs there, with what may go wrong in between."""

import contextlib
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from pytest_django import Settings

from clusters.models import Cluster, Dispatch, Node, ObservedPod
from jobs.dispatch import limits, reconcile, start
from jobs.dispatch.progress import advance
from jobs.engine import cycle
from jobs.models import Attempt, Job
from portal.core import clock
from tests.clusters_running import JSON_PATCH
from tests.dispatch.stage import Stage

State = Job.State
Step = Attempt.Step
GANG = {"workers": 2, "topology": {"mode": "require", "level": "rack"}}


def placed(stage: Stage, **fields: object) -> tuple[Job, Attempt]:
    """A gang that holds its place and of which nothing was sent yet."""
    job = stage.submit(**{**GANG, **fields})
    cycle.run_once()
    return job, job.attempts.get(step=Step.PLANNED)


def test_a_gang_runs_where_it_was_placed_and_gives_all_back(stage: Stage) -> None:
    job = stage.submit(**GANG, env={"SIM_RUN_S": "20"})

    stage.until_state(job, State.RUNNING)
    planned = sorted(row.node.name for row in job.attempts.get().allocations.select_related("node"))
    assert stage.bound() == planned
    assert stage.held() == 16
    stage.until_state(job, State.SUCCEEDED)

    assert stage.held() == 0
    assert job.exit_code == 0
    assert job.attempts.count() == 1


def test_pods_whose_policy_has_gone_are_released_at_their_gates(stage: Stage) -> None:
    # The simulated cluster has no admission policies: it is as if somebody had deleted ours since the probe.
    job, attempt = placed(stage)
    Attempt.objects.filter(pk=attempt.pk).update(dispatch=Dispatch.BORN_PINNED)

    stage.until_state(job, State.RUNNING)

    assert stage.bound() == sorted(row.node.name for row in attempt.allocations.select_related("node"))


def test_nothing_is_opened_for_pods_without_gate_when_a_node_of_the_plan_was_closed(stage: Stage) -> None:
    job, attempt = placed(stage)
    Attempt.objects.filter(pk=attempt.pk).update(dispatch=Dispatch.BORN_PINNED)
    stage.until_step(job, Step.ATTACHED)
    Node.objects.filter(pk__in=attempt.allocations.values("node")).update(is_cordoned=True)

    reconcile.reconcile_due()

    attempt.refresh_from_db()
    assert attempt.step == Step.STOPPING
    assert stage.pods() == []


def test_a_cluster_that_takes_no_group_any_more_gets_the_gang_without_and_says_why(stage: Stage) -> None:
    # The simulated cluster has no PodGroups: it is as if somebody had switched them off since the checks.
    job, attempt = placed(stage)
    Attempt.objects.filter(pk=attempt.pk).update(is_grouped=True)
    Cluster.objects.update(has_pod_groups=True)

    stage.until_state(job, State.RUNNING)

    first, second = job.attempts.order_by("number")
    assert (first.is_grouped, second.is_grouped) == (True, False)
    assert "does not take the gang as a PodGroup" in first.stop_message
    assert not stage.was_bound(first)
    assert job.exclusions == []
    cluster = Cluster.objects.get()
    assert not cluster.has_pod_groups
    assert cluster.findings.get(code="native_gangs").numbers["is"] == "refused"


def test_of_a_group_the_pod_that_no_node_was_good_for_is_the_one_to_blame() -> None:
    waits = ObservedPod(
        rank=0,
        message="minCount (2) cannot be satisfied: 0 scheduled, 1 remaining, preemption: 0/16 nodes are available",
    )
    blamed = ObservedPod(rank=1, message="0/16 nodes are available: 1 Insufficient nvidia.com/gpu.")

    assert start._first_told([waits, blamed]) is blamed
    assert start._first_told([waits]) is waits


@pytest.mark.parametrize("kind", ["Job", "Service"])
def test_an_object_whose_creation_was_not_answered_is_adopted(stage: Stage, kind: str) -> None:
    job, attempt = placed(stage)
    stage.simulated.control("POST", "/simulated/lose-reply", {"method": "POST", "kind": kind})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.get() == attempt
    assert len(stage.objects()) == 1
    assert len(stage.pods()) == 2


def test_a_patch_that_was_not_answered_is_no_second_release(stage: Stage) -> None:
    job, _attempt = placed(stage)
    stage.until_step(job, Step.RELEASING)
    stage.simulated.control("POST", "/simulated/lose-reply", {"method": "PATCH", "kind": "Pod"})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1


@pytest.mark.parametrize(("kind", "spec"), [("jobs", "job"), ("services", "service")])
def test_a_name_that_somebody_took_costs_an_attempt_and_leaves_theirs_alone(stage: Stage, kind: str, spec: str) -> None:
    job, attempt = placed(stage)
    container = {"name": "main", "image": "example.org/other:1"}
    specs = {
        "job": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        "service": {"ports": [{"port": 80}]},
    }
    theirs = stage.create(kind, {"metadata": {"name": attempt.object_name}, "spec": specs[spec]})

    stage.until_state(job, State.RUNNING)

    assert [row.number for row in job.attempts.order_by("number")] == [1, 2]
    uids = [found["metadata"]["uid"] for found in stage.objects(kind)]
    assert theirs["metadata"]["uid"] in uids


def test_a_quota_of_the_namespace_refuses_with_its_own_words(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GATHER_S", 2.0)
    stage.create("resourcequotas", {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
    job = stage.submit(**GANG)

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.REFUSED
    assert "exceeded quota: small" in job.outcome_message
    assert job.attempts.count() == 1
    assert not stage.was_bound(job.attempts.get())
    assert stage.held() == 0


def test_a_runtime_class_that_the_cluster_does_not_have_refuses_with_its_own_words(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GATHER_S", 2.0)
    job = stage.submit(**GANG, runtime_class="nothing")

    stage.until_state(job, State.FAILED)

    assert (job.outcome_code, job.attempts.count()) == (Job.Outcome.REFUSED, 1)
    assert 'RuntimeClass "nothing" not found' in job.outcome_message
    assert stage.held() == 0


def test_pods_say_on_their_cluster_which_gpu_types_were_asked_for(stage: Stage) -> None:
    job = stage.submit(**GANG, accelerators=["h100"])

    stage.until_state(job, State.RUNNING)

    for pod in stage.pods():
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [term] = required["nodeSelectorTerms"]
        assert term["matchExpressions"] == [
            {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}
        ]
        assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}]


def test_a_namespace_that_is_missing_refuses(stage: Stage) -> None:
    job, attempt = placed(stage)
    Attempt.objects.filter(pk=attempt.pk).update(namespace="nowhere")

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.REFUSED
    assert "nowhere" in job.outcome_message


@pytest.mark.parametrize("fault", ["cordoned", "lost"])
def test_a_node_that_falls_before_the_release_costs_no_gpu(stage: Stage, fault: str) -> None:
    job, attempt = placed(stage, workers=1)
    node = attempt.allocations.get().node
    if fault == "cordoned":
        stage.node(node.name, unschedulable=True)
    else:
        stage.simulated.control("POST", f"/simulated/nodes/{node.name}/fail")
    fallen = Node.objects.filter(pk=node.pk).exclude(is_ready=True, is_cordoned=False)
    stage.simulated.wait_for(fallen.exists, "the mirror knows", timeout_s=20)

    stage.until_state(job, State.RUNNING)

    first, second = job.attempts.order_by("number")
    assert not stage.was_bound(first)
    assert second.allocations.get().node != node
    # It was not the node's fault for good: the snapshot tells when it can be used again.
    assert job.excluded_node_ids(clock.now()) == []


def test_a_gate_that_was_opened_onto_the_planned_node_is_as_good_as_ours(stage: Stage) -> None:
    job, attempt = placed(stage)
    stage.until_step(job, Step.RELEASING)
    _release(stage, attempt, rank=0, node=attempt.allocations.get(rank=0).node.name)

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1


def test_a_gate_that_was_opened_onto_another_node_rolls_the_gang_back(stage: Stage) -> None:
    job, attempt = placed(stage)
    stage.until_step(job, Step.RELEASING)
    _release(stage, attempt, rank=0, node=attempt.allocations.get(rank=1).node.name)
    stage.forgiven.add("place")  # not the portal's doing

    stage.until_state(job, State.QUEUED)
    attempt.refresh_from_db()
    assert attempt.stop_message == "a pod was changed on the cluster"
    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 2


@pytest.mark.parametrize("step", [Step.GATHERING, Step.RELEASING, Step.STARTING])
def test_a_pod_that_somebody_deletes_before_the_start_costs_an_attempt(stage: Stage, step: Step) -> None:
    job, _attempt = placed(stage)
    stage.until_step(job, step)
    stage.simulated.wait_for(lambda: len(stage.pods()) == 2, "the pods are there")
    stage.delete("pods", stage.pods()[0]["metadata"]["name"])

    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert len(stage.bound()) == 2
    assert stage.held() == 16


@pytest.mark.parametrize("step", [Step.CREATED, Step.ATTACHED, Step.GATHERING, Step.RELEASING, Step.STARTING])
def test_an_object_that_somebody_deletes_before_the_start_costs_an_attempt(stage: Stage, step: Step) -> None:
    job, attempt = placed(stage)
    stage.until_step(job, step)
    stage.delete("jobs", attempt.object_name)

    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert stage.held() == 16


def test_a_foreign_pod_that_takes_a_gpu_after_the_release_rolls_the_gang_back_whole(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BIND_S", 2.0)
    job, attempt = placed(stage)
    stage.until_step(job, Step.RELEASING)
    taken = attempt.allocations.get(rank=0).node
    stage.foreign_pod(taken.name, gpus=1)

    stage.until(lambda: job.attempts.filter(number=2).exists(), "a second attempt")
    stage.until_state(job, State.RUNNING)

    assert job.excluded_node_ids(clock.now()) == [taken.pk]
    assert taken.name not in stage.bound()
    assert stage.held() == 16


def test_a_claim_that_is_missing_ends_the_run_and_blames_no_node(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BIND_S", 1.0)
    job = stage.submit(**GANG, volumes=[{"claim": "nothing", "mount_path": "/data"}])

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.MOUNT
    assert "nothing" in job.outcome_message
    assert job.excluded_node_ids(clock.now()) == []
    assert job.attempts.count() == 1
    assert stage.held() == 0


def test_what_no_node_has_is_tried_on_three_and_then_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BIND_S", 1.0)
    pages = {"size": "2Mi", "amount": "64Mi"}
    job = stage.submit(gpus_per_worker=1, memory={"request": "1Gi", "limit": "1Gi"}, huge_pages=pages)

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.REFUSED
    assert job.outcome_message.startswith("hugepages-2Mi is short on each of 3 nodes that were tried")
    assert job.attempts.count() == 3
    assert stage.held() == 0


def test_an_outage_in_the_middle_of_the_release_ends_whole(stage: Stage) -> None:
    job, _attempt = placed(stage)
    stage.until_step(job, Step.RELEASING)
    stage.simulated.control("POST", "/simulated/outage", {"seconds": 2})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1
    assert len(stage.pods()) == 2


def test_a_server_that_has_not_read_its_roles_yet_refuses_nobody(stage: Stage) -> None:
    job, _attempt = placed(stage)
    stage.simulated.control("POST", "/simulated/forget-rights", {"seconds": 1.5})

    stage.until_state(job, State.RUNNING)

    assert job.attempts.count() == 1


def test_a_namespace_without_rights_is_refused_soon_and_named(stage: Stage) -> None:
    job, _attempt = placed(stage)
    namespace = job.team.namespace
    # As a server answers an account that may write in other namespaces alone.
    denied = [{"namespace": namespace, "verb": verb} for verb in ("create", "patch", "delete")]
    denied.append({"resource": "namespaces", "verb": "get"})
    stage.simulated.control("PUT", "/simulated/rights", {"denied": denied})
    began = time.monotonic()

    stage.until_state(job, State.FAILED)

    assert time.monotonic() - began < limits.GATHER_S / 3
    assert job.outcome_code == Job.Outcome.REFUSED
    assert job.outcome_message.startswith(
        f"The namespace {namespace} is missing, or Muster has no rights in it on {stage.cluster.name}: "
        "the cluster's administrator applies its YAML (page of the cluster, Spaces). jobs.batch is forbidden"
    )


def test_a_namespace_that_is_not_there_is_refused_at_once_and_named(stage: Stage) -> None:
    job, attempt = placed(stage)
    Attempt.objects.filter(pk=attempt.pk).update(namespace="nowhere")

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.REFUSED
    assert job.outcome_message.startswith("The namespace nowhere is missing on ")


def test_a_right_that_stays_missing_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GATHER_S", 0.5)
    job, _attempt = placed(stage)
    stage.simulated.control("POST", "/simulated/forget-rights", {"seconds": 4})

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.REFUSED
    assert 'cannot create resource "jobs"' in job.outcome_message


def test_an_image_that_cannot_be_pulled_ends_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PULL_GRACE_S", 1.0)
    job = stage.submit(env={"SIM_IMAGE_PULL_FAIL": "1"}, backoff_limit=3)

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.IMAGE_PULL
    assert "example.org/train:1" in job.outcome_message
    assert stage.held() == 0


def test_the_image_of_the_checkout_counts_as_well(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(limits, "PULL_GRACE_S", 1.0)
    settings.MUSTER_GIT_IMAGE = "example.org/git:does-not-exist"
    job = stage.submit(code={"git_url": "https://example.org/code.git", "ref": "main"})

    stage.until_state(job, State.FAILED)

    assert job.outcome_code == Job.Outcome.IMAGE_PULL


def test_many_workers_at_once_take_each_step_once(stage: Stage) -> None:
    job = stage.submit(workers=4, env={"SIM_RUN_S": "10"})
    ended = threading.Event()

    def work() -> None:
        try:
            while not ended.is_set():
                reconcile.reconcile_due()
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        stage.until_state(job, State.SUCCEEDED)
    finally:
        ended.set()
        for worker in workers:
            worker.join(20)

    assert job.attempts.count() == 1
    codes = list(job.events.order_by("pk").values_list("code", flat=True))
    assert codes == ["queued", "admitted", "starting", "running", "succeeded"]
    assert stage.held() == 0


class Killed(BaseException):
    """The worker died here."""


@pytest.mark.parametrize(
    "step",
    [Step.PLANNED, Step.CREATED, Step.ATTACHED, Step.GATHERING, Step.RELEASING, Step.STARTING, Step.RUNNING],
)
def test_a_worker_killed_before_it_stored_a_step_is_replaced(
    stage: Stage, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did on the cluster is done; nobody wrote it down. The next worker finds out."""
    monkeypatch.setattr(reconcile, "CLAIM", timedelta(seconds=0.5))
    job, _attempt = placed(stage, env={"SIM_RUN_S": "10"})
    deaths: list[str] = []
    for module in ("start", "run", "stop"):
        _die_once(monkeypatch, module, step, deaths)

    def beat() -> bool:
        job.refresh_from_db()
        return job.is_final

    def until_over() -> None:
        while not deaths:
            with contextlib.suppress(Killed):
                stage.until(beat, "the job ends")

    until_over()
    stage.until_state(job, State.SUCCEEDED)

    assert deaths == [step]
    assert job.attempts.count() == 1
    assert stage.held() == 0


def _die_once(monkeypatch: pytest.MonkeyPatch, module: str, step: str, deaths: list[str]) -> None:
    target = f"jobs.dispatch.{module}.advance"

    def dying(view: object, **arguments: object) -> None:
        if view.attempt.step == step and "step" in arguments and not deaths:  # type: ignore[attr-defined]
            deaths.append(step)
            raise Killed
        advance(view, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(target, dying)


def _release(stage: Stage, attempt: Attempt, *, rank: int, node: str) -> None:
    """Open the gate of one rank, as a worker would whose claim has run out."""
    name = f"{attempt.object_name}-{rank}-"
    pod = next(pod for pod in stage.pods() if pod["metadata"]["name"].startswith(name))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    operations = [
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    path = f"/api/v1/namespaces/{stage.namespace}/pods/{pod['metadata']['name']}"
    status, answer = stage.simulated.request("PATCH", path, operations, kind=JSON_PATCH)
    assert status == 200, answer
