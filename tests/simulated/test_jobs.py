"""Jobs from creation to their end."""

from typing import Any

import pytest

from clusters.simulated.controllers.tally import format_indexes, parse_indexes
from tests.simulated.conftest import GATE, Corner, job, pin, release

pytestmark = pytest.mark.timeout(60)


def test_a_suspended_job_makes_no_pods_until_it_is_resumed(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, {"suspend": True}, env={"SIM_RUN_S": "20"}))
    corner.wait_condition("gang", "Suspended")
    assert corner.items("pods") == []
    assert "startTime" not in corner.get("jobs", "gang")["status"]

    code, _ = corner.patch("jobs", "gang", [{"op": "replace", "path": "/spec/suspend", "value": False}])

    assert code == 200
    corner.wait_phases(["Running", "Running"])
    assert corner.condition("jobs", "gang", "Suspended")["status"] == "False"


def test_a_gang_waits_at_its_gate_and_goes_where_it_is_pinned(corner: Corner) -> None:
    corner.create("jobs", job("gang", 4, gpus=8, env={"SIM_RUN_S": "40"}, **GATE))
    corner.cluster.wait_for(lambda: len(corner.items("pods")) == 4, "four pods")
    pods = corner.items("pods")
    assert {each["status"]["conditions"][0]["reason"] for each in pods} == {"SchedulingGated"}

    for each in pods:
        rank = int(each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
        code, answer = corner.patch("pods", each["metadata"]["name"], release(each, f"node-{3 - rank}"))
        assert code == 200, answer

    corner.wait_phases(["Running"] * 4)
    places = {each["spec"]["hostname"]: each["spec"]["nodeName"] for each in corner.items("pods")}
    assert places == {f"gang-{rank}": f"node-{3 - rank}" for rank in range(4)}
    corner.wait_condition("gang", "Complete")
    status = corner.get("jobs", "gang")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (4, "0-3")
    assert all("finalizers" not in each["metadata"] for each in corner.items("pods"))


def test_a_pod_pinned_to_a_full_node_stays_pending(corner: Corner) -> None:
    corner.create("jobs", job("first", 1, gpus=8, affinity=pin("node-0")))
    corner.wait_phases(["Running"])
    corner.create("jobs", job("second", 1, gpus=1, affinity=pin("node-0")))

    [message] = corner.cluster.wait_for(lambda: corner.events("FailedScheduling"), "a refusal")

    assert message.startswith("0/4 nodes are available: 1 Insufficient nvidia.com/gpu, 3 node(s) didn't satisfy")
    assert corner.phases() == ["Pending", "Running"]


def test_a_job_completes_and_its_time_to_live_removes_it(corner: Corner) -> None:
    corner.create("jobs", job("short", 1, {"ttlSecondsAfterFinished": 20}, env={"SIM_RUN_S": "5"}))
    corner.wait_condition("short", "Complete")
    assert corner.condition("jobs", "short", "SuccessCriteriaMet")["reason"] == "CompletionsReached"
    assert corner.events("Completed") == ["Job completed"]

    gone = corner.path("jobs", "short")
    corner.cluster.wait_for(lambda: corner.cluster.request("GET", gone)[0] == 404, "the Job to expire")
    corner.cluster.wait_for(lambda: corner.items("pods") == [], "its pods to go with it")


def test_the_first_failure_of_a_gang_stops_the_other_ranks(corner: Corner) -> None:
    body = job("gang", 2, env={"SIM_RUN_S": "500"})
    corner.create("jobs", body)
    corner.wait_phases(["Running", "Running"])
    first = next(each for each in corner.items("pods") if each["spec"]["hostname"] == "gang-0")

    corner.cluster.request("DELETE", corner.path("pods", first["metadata"]["name"]))

    assert corner.wait_condition("gang", "Failed")["reason"] == "BackoffLimitExceeded"
    assert corner.condition("jobs", "gang", "FailureTarget")["status"] == "True"
    corner.cluster.wait_for(lambda: corner.items("pods") == [], "every rank to be stopped")


def test_peers_of_a_failed_rank_are_stopped(corner: Corner) -> None:
    rules = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    body = job("gang", 2, {"podFailurePolicy": rules, "backoffLimit": 5}, env={"SIM_EXIT_CODE_RANK": "1:42"})
    env = body["spec"]["template"]["spec"]["containers"][0]["env"]
    env.append({"name": "SIM_RUN_S", "value": "10"})
    corner.create("jobs", body)

    failed = corner.wait_condition("gang", "Failed")

    assert failed["reason"] == "PodFailurePolicy"
    assert failed["message"].endswith("failed with exit code 42 matching FailJob rule at index 0")
    assert corner.get("jobs", "gang")["status"].get("active", 0) == 0


def test_an_ignored_failure_is_replaced_and_not_counted(corner: Corner) -> None:
    rules = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    corner.create("jobs", job("gang", 1, {"podFailurePolicy": rules}, env={"SIM_RUN_S": "100"}))
    corner.wait_phases(["Running"])
    [first] = corner.items("pods")
    path = corner.path("pods", first["metadata"]["name"])

    assert corner.cluster.request("POST", f"{path}/eviction", {})[0] == 201

    def replaced() -> bool:
        running = corner.items("pods", "fieldSelector=status.phase=Running")
        return [each for each in running if each["metadata"]["uid"] != first["metadata"]["uid"]] != []

    corner.cluster.wait_for(replaced, "the replacement")
    assert corner.get("jobs", "gang")["status"].get("failed", 0) == 0


def test_a_failed_pod_is_replaced_until_the_backoff_limit(corner: Corner) -> None:
    env = {"SIM_RUN_S": "2", "SIM_EXIT_CODE": "1"}
    corner.create("jobs", job("stubborn", 1, {"backoffLimit": 1}, env=env))

    corner.wait_condition("stubborn", "Failed")

    assert corner.get("jobs", "stubborn")["status"]["failed"] == 2
    assert len(corner.items("pods")) == 2


def test_a_container_restarts_in_place_until_the_backoff_limit(corner: Corner) -> None:
    env = {"SIM_RUN_S": "2", "SIM_EXIT_CODE": "1"}
    corner.create("jobs", job("stubborn", 1, {"backoffLimit": 2}, env=env, restartPolicy="OnFailure"))

    failed = corner.wait_condition("stubborn", "Failed")

    assert failed["reason"] == "BackoffLimitExceeded"
    assert len(corner.items("pods")) <= 1


def test_a_job_past_its_deadline_fails(corner: Corner) -> None:
    corner.create("jobs", job("slow", 1, {"activeDeadlineSeconds": 15}, env={"SIM_RUN_S": "500"}))

    assert corner.wait_condition("slow", "Failed")["reason"] == "DeadlineExceeded"
    corner.cluster.wait_for(lambda: corner.items("pods") == [], "its pod to be deleted")


def test_suspending_deletes_pods_without_counting_them(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, env={"SIM_RUN_S": "500"}))
    corner.wait_phases(["Running", "Running"])

    corner.patch("jobs", "gang", [{"op": "replace", "path": "/spec/suspend", "value": True}])

    corner.cluster.wait_for(lambda: corner.items("pods") == [], "the pods to go")
    assert corner.get("jobs", "gang")["status"].get("failed", 0) == 0
    assert corner.wait_condition("gang", "Suspended")["reason"] == "JobSuspended"


def test_a_work_list_without_indexes_runs_to_its_completions(corner: Corner) -> None:
    spec = {"completionMode": "NonIndexed", "completions": 3, "parallelism": 2}
    corner.create("jobs", job("batch", 1, spec, env={"SIM_RUN_S": "2"}))

    corner.wait_condition("batch", "Complete")

    assert corner.get("jobs", "batch")["status"]["succeeded"] == 3
    assert "completedIndexes" not in corner.get("jobs", "batch")["status"]


def test_a_quota_that_is_too_small_shows_as_a_failed_create(corner: Corner) -> None:
    quota = {"metadata": {"name": "tight"}, "spec": {"hard": {"requests.nvidia.com/gpu": "3"}}}
    corner.create("resourcequotas", quota)
    corner.create("jobs", job("gang", 4, **GATE))

    [message] = corner.cluster.wait_for(lambda: corner.events("FailedCreate")[:1], "the refusal")

    assert message.startswith('Error creating: pods "gang-3-')
    assert "exceeded quota: tight" in message
    assert len(corner.items("pods")) == 3


def test_deleting_a_job_without_a_policy_orphans_its_pods(corner: Corner) -> None:
    corner.create("jobs", job("gang", 1, env={"SIM_RUN_S": "500"}))
    corner.wait_phases(["Running"])

    assert corner.cluster.request("DELETE", corner.path("jobs", "gang"))[0] == 200

    gone = corner.path("jobs", "gang")
    corner.cluster.wait_for(lambda: corner.cluster.request("GET", gone)[0] == 404, "the Job to go")
    [left] = corner.items("pods")
    assert "ownerReferences" not in left["metadata"]
    corner.cluster.wait_for(lambda: "finalizers" not in corner.items("pods")[0]["metadata"], "no finalizer")


def test_a_foreground_delete_waits_for_the_pods(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, env={"SIM_RUN_S": "500", "SIM_STOP_S": "10"}))
    corner.wait_phases(["Running", "Running"])
    service = {"metadata": {"name": "gang", "ownerReferences": [_owner(corner, "gang")]}, "spec": {"clusterIP": "None"}}
    corner.create("services", service)
    uid = corner.get("jobs", "gang")["metadata"]["uid"]
    options = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}

    code, answer = corner.cluster.request("DELETE", corner.path("jobs", "gang"), options)

    assert (code, answer["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
    assert len(corner.items("pods")) == 2
    gone = corner.path("jobs", "gang")
    corner.cluster.wait_for(lambda: corner.cluster.request("GET", gone)[0] == 404, "the Job to go")
    assert corner.items("pods") == []
    corner.cluster.wait_for(lambda: corner.items("services") == [], "the Service to go with its owner")


def test_a_deleted_gated_pod_fails_its_gang(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, {"podReplacementPolicy": "Failed"}, **GATE))
    corner.cluster.wait_for(lambda: len(corner.items("pods")) == 2, "two pods")

    corner.cluster.request("DELETE", corner.path("pods", corner.items("pods")[0]["metadata"]["name"]))

    assert corner.wait_condition("gang", "Failed")["reason"] == "BackoffLimitExceeded"


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({0, 1}, "0,1"), ({0, 1, 2, 5, 7, 8}, "0-2,5,7,8")],
)
def test_completed_indexes_are_written_as_ranges(indexes: set[int], text: str) -> None:
    assert format_indexes(indexes) == text
    assert parse_indexes(text) == indexes


def _exit_code(pod: dict[str, Any]) -> int:
    return int(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"])


def _owner(corner: Corner, name: str) -> dict[str, Any]:
    uid = corner.get("jobs", name)["metadata"]["uid"]
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
