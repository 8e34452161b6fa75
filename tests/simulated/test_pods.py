"""The kubelet's side: start, probes, ends, restarts, pulls, logs, deletion, checkpoints."""

import time
from typing import Any

import pytest

from tests.clusters_running import SimulatedCluster
from tests.simulated.conftest import GATE, Corner, pod

pytestmark = pytest.mark.timeout(60)


def container_state(corner: Corner, name: str) -> dict[str, Any]:
    statuses = corner.get("pods", name)["status"].get("containerStatuses") or [{"state": {}}]
    return dict(statuses[0]["state"])


def wait_waiting(corner: Corner, name: str, reason: str) -> None:
    corner.cluster.wait_for(
        lambda: container_state(corner, name).get("waiting", {}).get("reason") == reason, f"{reason} of {name}"
    )


def test_a_pod_starts_runs_and_succeeds(corner: Corner) -> None:
    corner.create("pods", pod("one", env={"SIM_RUN_S": "20"}))
    corner.wait_phases(["Running"])
    status = corner.get("pods", "one")["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
    assert {"podIP", "hostIP", "startTime"} <= set(status)

    corner.wait_phases(["Succeeded"])

    assert container_state(corner, "one")["terminated"]["reason"] == "Completed"
    said = {each["reason"] for each in corner.items("events")}
    assert {"Scheduled", "Pulling", "Pulled", "Created", "Started"} <= said


@pytest.mark.parametrize(
    ("env", "code", "reason"),
    [
        ({"SIM_EXIT_CODE": "7"}, 7, "Error"),
        ({"SIM_EXIT_CODE": "137", "SIM_OOM": "1"}, 137, "OOMKilled"),
        ({"SIM_EXIT_CODE_RANK": "0:9,1:2"}, 9, "Error"),
    ],
)
def test_a_pod_ends_as_its_environment_says(corner: Corner, env: dict[str, str], code: int, reason: str) -> None:
    corner.create("pods", pod("one", env={"SIM_RUN_S": "1", **env}))

    corner.wait_phases(["Failed"])

    ended = container_state(corner, "one")["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)


def test_a_readiness_probe_delays_readiness(corner: Corner) -> None:
    body = pod("one", env={"SIM_RUN_S": "500"})
    body["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"port": 80}, "initialDelaySeconds": 20}
    corner.create("pods", body)
    corner.wait_phases(["Running"])

    assert corner.condition("pods", "one", "Ready")["status"] == "False"
    corner.wait_condition("one", "Ready", "pods")


@pytest.mark.parametrize("fault", ["env", "tag"])
def test_an_image_that_cannot_be_pulled_is_waited_for(corner: Corner, fault: str) -> None:
    body = pod("one", env={"SIM_IMAGE_PULL_FAIL": "1"} if fault == "env" else {})
    if fault == "tag":
        body["spec"]["containers"][0]["image"] = "registry.example/train:does-not-exist"
    corner.create("pods", body)

    wait_waiting(corner, "one", "ImagePullBackOff")

    assert corner.phases() == ["Pending"]
    assert "Error: ErrImagePull" in corner.events("Failed")


def test_an_init_container_runs_first_and_leaves_its_message(corner: Corner) -> None:
    body = pod("one", env={"SIM_RUN_S": "500"})
    message = [{"name": "SIM_TERMINATION_MESSAGE", "value": "0123abc"}]
    body["spec"]["initContainers"] = [{"name": "checkout", "image": "git", "env": message}]
    corner.create("pods", body)

    corner.wait_phases(["Running"])

    [init] = corner.get("pods", "one")["status"]["initContainerStatuses"]
    assert init["state"]["terminated"]["exitCode"] == 0
    assert init["state"]["terminated"]["message"] == "0123abc"


def test_a_failing_init_container_fails_the_pod(corner: Corner) -> None:
    body = pod("one")
    body["spec"]["initContainers"] = [
        {"name": "checkout", "image": "git", "env": [{"name": "SIM_EXIT_CODE", "value": "128"}]}
    ]
    corner.create("pods", body)

    corner.wait_phases(["Failed"])

    assert "waiting" in container_state(corner, "one")


def test_a_container_restarts_on_failure_with_a_growing_delay(corner: Corner) -> None:
    env = {"SIM_RUN_S": "2", "SIM_EXIT_CODE": "1"}
    corner.create("pods", pod("one", env=env, restartPolicy="OnFailure"))

    wait_waiting(corner, "one", "CrashLoopBackOff")

    [status] = corner.get("pods", "one")["status"]["containerStatuses"]
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert corner.phases() == ["Running"]


def test_a_missing_claim_keeps_a_pod_pending_until_it_is_made(corner: Corner) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    corner.create("pods", pod("one", volumes=volumes))
    [message] = corner.cluster.wait_for(lambda: corner.events("FailedScheduling"), "a refusal")
    assert 'persistentvolumeclaim "data" not found' in message

    storage = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}
    corner.create("persistentvolumeclaims", claim)

    corner.wait_phases(["Running"])
    assert corner.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound"


def test_a_deleted_pod_stops_first_and_then_goes(corner: Corner) -> None:
    corner.create("pods", pod("one", env={"SIM_RUN_S": "500", "SIM_STOP_S": "10"}))
    corner.wait_phases(["Running"])
    path = corner.path("pods", "one")

    _, answer = corner.cluster.request("DELETE", path)

    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    assert corner.cluster.request("GET", path)[0] == 200
    corner.cluster.wait_for(lambda: corner.cluster.request("GET", path)[0] == 404, "the pod to go")


def test_a_checkpoint_mark_moves_on(corner: Corner) -> None:
    env = {"SIM_RUN_S": "500", "SIM_CHECKPOINT_EVERY_S": "5", "SIM_CHECKPOINT_ANNOTATION": "example.com/saved-at"}
    corner.create("pods", pod("one", env=env))

    def mark() -> str:
        return str((corner.get("pods", "one")["metadata"].get("annotations") or {}).get("example.com/saved-at", ""))

    first = corner.cluster.wait_for(mark, "a first mark")
    corner.cluster.wait_for(lambda: mark() > first, "a later mark")


def test_logs_grow_and_stay_the_same(corner: Corner) -> None:
    corner.create("pods", pod("one", env={"SIM_RUN_S": "100"}))
    path = corner.path("pods", "one") + "/log"
    corner.wait_phases(["Running"])
    early = corner.cluster.wait_for(lambda: corner.cluster.request("GET", path)[1], "a first line")

    def later() -> str:
        return str(corner.cluster.request("GET", path)[1])

    corner.cluster.wait_for(lambda: len(later()) > len(early), "more lines")
    assert later().startswith(early)
    corner.cluster.wait_for(lambda: "loss" in later(), "a step")
    assert later().count("\n") > corner.cluster.request("GET", f"{path}?tailLines=1")[1].count("\n") == 1
    assert len(corner.cluster.request("GET", f"{path}?limitBytes=10")[1]) == 10
    stamped = corner.cluster.request("GET", f"{path}?timestamps=true")[1]
    assert stamped.startswith(time.strftime("%Y-", time.gmtime()))


def test_following_a_log_ends_with_the_container(corner: Corner) -> None:
    corner.create("pods", pod("one", env={"SIM_RUN_S": "30"}))
    corner.wait_phases(["Running"])

    _, text = corner.cluster.request("GET", corner.path("pods", "one") + "/log?follow=true")

    assert text.rstrip().endswith("done")
    assert corner.phases() == ["Succeeded"]


def test_logs_of_what_does_not_run_are_refused(corner: Corner) -> None:
    corner.create("pods", pod("gated", **GATE))
    corner.create("pods", pod("broken", env={"SIM_IMAGE_PULL_FAIL": "1"}))
    wait_waiting(corner, "broken", "ImagePullBackOff")
    cluster: SimulatedCluster = corner.cluster

    assert cluster.request("GET", corner.path("pods", "gated") + "/log") == (204, "")
    code, answer = cluster.request("GET", corner.path("pods", "broken") + "/log")
    assert (code, answer["message"]) == (
        400, 'container "main" in pod "broken" is waiting to start: ImagePullBackOff',
    )  # fmt: skip
    code, answer = cluster.request("GET", corner.path("pods", "broken") + "/log?container=other")
    assert (code, answer["message"]) == (400, "container other is not valid for pod broken")
