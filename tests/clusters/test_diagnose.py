"""What a pod says about itself becomes the values that the driver and people act on."""

from datetime import UTC, datetime
from typing import Any

import pytest

from clusters.watch.diagnose import PodView, object_view, pod_view, warning_of
from clusters.watch.shapes import Event, Object, Pod
from tests.clusters.documents import DOMAIN, job, pod, read_as, warning

GATE = f"{DOMAIN}/placement"


def view(**changes: Any) -> PodView:
    return pod_view(read_as(Pod, pod("p", run="r7", **changes)), domain=DOMAIN, gpu_resources={"nvidia.com/gpu"})


def container(**state: Any) -> dict[str, Any]:
    return {"name": "main", "state": state}


def test_a_pod_at_our_gate_waits_there_without_trouble() -> None:
    seen = view(
        gpus=8,
        gates=[GATE, "other.example/quota"],
        attempt=3,
        labels={"batch.kubernetes.io/job-completion-index": "5"},
        status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
    )

    assert (seen.run, seen.attempt, seen.rank) == ("r7", 3, 5)
    assert (seen.is_gated, seen.foreign_gates, seen.is_scheduled) == (True, ["other.example/quota"], False)
    assert (seen.gpus, seen.phase, seen.reason) == (8, "Pending", "")
    assert seen.created_at == datetime(2026, 12, 1, 10, tzinfo=UTC)


def test_a_released_pod_names_the_node_that_it_is_pinned_to() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    seen = view(spec={"affinity": affinity})

    assert (seen.pinned_node, seen.is_gated, seen.node_name) == ("node-7", False, "")


def test_a_pod_that_fits_nowhere_says_so_in_the_words_of_the_scheduler() -> None:
    text = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}

    seen = view(status={"conditions": [unschedulable]})

    assert (seen.reason, seen.message) == ("Unschedulable", text)


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_progress_is_not_trouble(reason: str) -> None:
    assert view(node="n1", status={"containerStatuses": [container(waiting={"reason": reason})]}).reason == ""


def test_a_waiting_container_counts_before_the_condition_of_its_pod() -> None:
    seen = view(
        node="n1",
        status={
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            "containerStatuses": [container(waiting={"reason": "ImagePullBackOff", "message": "no such tag"})],
        },
    )

    assert (seen.reason, seen.message) == ("ImagePullBackOff", "no such tag")


def test_trouble_of_an_init_container_is_told_apart_from_that_of_the_main_one() -> None:
    seen = view(
        node="n1",
        status={
            "initContainerStatuses": [container(waiting={"reason": "CreateContainerConfigError", "message": "secret"})],
            "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
        },
    )

    assert (seen.reason, seen.message) == ("Init:CreateContainerConfigError", "secret")


def test_the_commit_that_a_checkout_resolved_comes_back_by_its_termination_message() -> None:
    seen = view(
        node="n1",
        phase="Running",
        status={
            "initContainerStatuses": [container(terminated={"exitCode": 0, "message": "3f2a9c1"})],
            "containerStatuses": [container(running={"startedAt": "2026-12-01T10:05:00Z"})],
            "conditions": [{"type": "Ready", "status": "True"}],
            "podIP": "10.1.0.7",
        },
    )

    assert (seen.init_message, seen.reason, seen.exit_code) == ("3f2a9c1", "", None)
    assert (seen.is_ready, seen.ip) == (True, "10.1.0.7")
    assert seen.started_at == datetime(2026, 12, 1, 10, 5, tzinfo=UTC)
    assert seen.finished_at is None


@pytest.mark.parametrize(("reason", "code"), [("OOMKilled", 137), ("Error", 1)])
def test_a_failed_pod_tells_how_its_container_ended(reason: str, code: int) -> None:
    ended = {"reason": reason, "exitCode": code, "message": "last words", "finishedAt": "2026-12-01T11:00:00Z"}

    seen = view(node="n1", phase="Failed", status={"containerStatuses": [container(terminated=ended)]})

    assert (seen.reason, seen.message, seen.exit_code) == (reason, "last words", code)
    assert seen.finished_at == datetime(2026, 12, 1, 11, tzinfo=UTC)


def test_a_failed_checkout_is_not_taken_for_the_program_of_the_user() -> None:
    ended = container(terminated={"reason": "Error", "exitCode": 128, "message": "no such ref"})

    seen = view(node="n1", phase="Failed", status={"initContainerStatuses": [ended]})

    assert (seen.reason, seen.exit_code, seen.init_message) == ("Init:Error", 128, "no such ref")


def test_the_word_of_the_kubelet_counts_before_that_of_the_container() -> None:
    status = {
        "reason": "Evicted",
        "message": "node was low on memory",
        "containerStatuses": [container(terminated={"reason": "Error", "exitCode": 137})],
    }

    seen = view(node="n1", phase="Failed", status=status)

    assert (seen.reason, seen.message, seen.exit_code) == ("Evicted", "node was low on memory", 137)


def test_a_disruption_is_kept_beside_the_reason() -> None:
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]

    assert view(phase="Failed", status={"conditions": conditions}).disruption == "DeletionByTaintManager"


def test_a_crash_loop_shows_the_exit_code_of_the_last_try() -> None:
    looping = container(waiting={"reason": "CrashLoopBackOff"}) | {
        "restartCount": 4,
        "lastState": {"terminated": {"exitCode": 3}},
    }

    seen = view(node="n1", phase="Running", status={"containerStatuses": [looping]})

    assert (seen.reason, seen.exit_code, seen.restarts) == ("CrashLoopBackOff", 3, 4)


def test_a_pod_that_succeeded_has_no_reason() -> None:
    ended = container(terminated={"reason": "Completed", "exitCode": 0, "finishedAt": "2026-12-01T11:00:00Z"})

    seen = view(node="n1", phase="Succeeded", status={"containerStatuses": [ended]})

    assert (seen.reason, seen.exit_code) == ("", 0)


def test_a_reported_checkpoint_is_a_moment_or_nothing() -> None:
    key = f"{DOMAIN}/checkpoint"

    at = view(annotations={key: "2026-12-01T10:30:00+02:00"}).checkpoint_at
    assert at == datetime(2026, 12, 1, 8, 30, tzinfo=UTC)
    for nonsense in ("yesterday", "2026-12-01T10:30:00", ""):
        assert view(annotations={key: nonsense}).checkpoint_at is None


def test_texts_of_programs_are_cut_and_lose_what_the_database_does_not_take() -> None:
    ended = container(terminated={"reason": "Error", "exitCode": 1, "message": "a\x00b" * 1_000})

    message = view(phase="Failed", status={"containerStatuses": [ended]}).message

    assert len(message) == 500
    assert "\x00" not in message


def test_the_barest_document_is_read() -> None:
    bare = {"metadata": {"name": "p", "uid": "u"}, "spec": None, "status": None}

    seen = pod_view(read_as(Pod, bare), domain=DOMAIN, gpu_resources=())

    assert (seen.phase, seen.run, seen.attempt, seen.rank, seen.gpus) == ("Pending", "", 0, None, 0)


def test_a_deployment_that_cannot_make_its_pods_warns_by_its_own_status() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    body = job("m-r1-a1", status={"conditions": [failure], "replicas": 0})

    seen = object_view("Deployment", read_as(Object, body), domain=DOMAIN)

    assert (seen.kind, seen.run, seen.attempt, seen.warning) == ("Deployment", "r1", 1, "exceeded quota")
    assert seen.status["replicas"] == 0


def test_only_warnings_are_warnings() -> None:
    event = warning("uid-1", "FailedCreate", "exceeded quota")

    assert warning_of(read_as(Event, event)) is not None
    assert warning_of(read_as(Event, event | {"type": "Normal"})) is None
    assert warning_of(read_as(Event, event | {"involvedObject": {}})) is None
