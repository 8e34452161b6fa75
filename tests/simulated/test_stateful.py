"""StatefulSets: names, order, replacement, clean-up."""

from typing import Any

import pytest

from tests.clusters_running import MERGE_PATCH
from tests.simulated.conftest import GATE, Corner, pod_spec

pytestmark = pytest.mark.timeout(60)
ORDINAL = "apps.kubernetes.io/pod-index"


def stateful_set(replicas: int, policy: str = "Parallel", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "ranks"},
        "spec": {
            "replicas": replicas,
            "serviceName": "ranks",
            "podManagementPolicy": policy,
            "selector": {"matchLabels": {"app": "ranks"}},
            "template": {
                "metadata": {"labels": {"app": "ranks"}},
                "spec": {**pod_spec(**more), "restartPolicy": "Always"},
            },
        },
    }


def names(corner: Corner) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in corner.items("pods"))


def uids(corner: Corner) -> set[str]:
    return {pod["metadata"]["uid"] for pod in corner.items("pods")}


def wait_ready(corner: Corner, count: int) -> dict[str, Any]:
    def probe() -> dict[str, Any]:
        status = corner.get("statefulsets", "ranks")["status"]
        return status if (status["replicas"], status.get("readyReplicas", 0)) == (count, count) else {}

    return corner.cluster.wait_for(probe, f"{count} ready pods")


def test_pods_have_ordinals_and_names_that_stay(corner: Corner) -> None:
    corner.create("statefulsets", stateful_set(3))
    wait_ready(corner, 3)

    assert names(corner) == ["ranks-0", "ranks-1", "ranks-2"]
    for number, pod in enumerate(sorted(corner.items("pods"), key=lambda pod: str(pod["metadata"]["name"]))):
        assert pod["metadata"]["labels"][ORDINAL] == str(number)
        assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == f"ranks-{number}"
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"ranks-{number}", "ranks")

    before = corner.get("pods", "ranks-1")["metadata"]["uid"]
    corner.cluster.request("DELETE", corner.path("pods", "ranks-1"))
    corner.cluster.wait_for(lambda: before not in uids(corner) and len(uids(corner)) == 3, "another ranks-1", 20)
    assert names(corner) == ["ranks-0", "ranks-1", "ranks-2"]


@pytest.mark.parametrize(("policy", "count"), [("Parallel", 3), ("OrderedReady", 1)])
def test_gated_pods_come_all_at_once_or_wait_for_the_first(corner: Corner, policy: str, count: int) -> None:
    corner.create("statefulsets", stateful_set(3, policy, **GATE))

    corner.cluster.wait_for(lambda: len(names(corner)) == count, f"{count} pods")
    assert corner.phases() == ["Pending"] * count


def test_in_order_each_waits_until_the_one_before_is_ready(corner: Corner) -> None:
    corner.create("statefulsets", stateful_set(3, "OrderedReady"))
    wait_ready(corner, 3)

    made = [corner.get("pods", f"ranks-{number}")["metadata"]["creationTimestamp"] for number in range(3)]
    assert made == sorted(made)


def test_the_highest_ordinals_go_first(corner: Corner) -> None:
    corner.create("statefulsets", stateful_set(3))
    wait_ready(corner, 3)

    path = corner.path("statefulsets", "ranks") + "/scale"
    assert corner.cluster.request("PATCH", path, {"spec": {"replicas": 1}}, kind=MERGE_PATCH)[0] == 200

    corner.cluster.wait_for(lambda: names(corner) == ["ranks-0"], "one pod is left")


def test_a_container_that_ends_starts_again_in_its_pod(corner: Corner) -> None:
    corner.create("statefulsets", stateful_set(1, env={"SIM_RUN_S": "3", "SIM_EXIT_CODE": "0"}))

    def restarted() -> bool:
        pods = corner.items("pods")
        return any(each["restartCount"] for pod in pods for each in pod["status"].get("containerStatuses") or ())

    corner.cluster.wait_for(restarted, "a restart")
    assert names(corner) == ["ranks-0"]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("podManagementPolicy", "Sideways", "supported values"),
        ("selector", {"matchLabels": {"app": "other"}}, "does not match template"),
    ],
)
def test_a_bad_set_is_refused_with_its_field(corner: Corner, path: str, value: Any, words: str) -> None:
    body = stateful_set(1)
    body["spec"][path] = value

    code, answer = corner.cluster.request("POST", corner.path("statefulsets"), body)

    assert code == 422, answer
    assert words in answer["message"]


def test_a_deadline_and_a_change_of_its_service_are_forbidden(corner: Corner) -> None:
    code, answer = corner.cluster.request(
        "POST", corner.path("statefulsets"), stateful_set(1, activeDeadlineSeconds=60)
    )
    assert (code, "activeDeadlineSeconds in StatefulSet is not Supported" in answer["message"]) == (422, True)

    corner.create("statefulsets", stateful_set(1))
    code, answer = corner.patch(
        "statefulsets", "ranks", [{"op": "replace", "path": "/spec/serviceName", "value": "other"}]
    )
    assert (code, "updates to statefulset spec for fields other than" in answer["message"]) == (422, True)


def test_a_deletion_in_the_foreground_takes_the_pods_first(corner: Corner) -> None:
    corner.create("statefulsets", stateful_set(2))
    wait_ready(corner, 2)

    corner.cluster.request("DELETE", corner.path("statefulsets", "ranks"), {"propagationPolicy": "Foreground"})

    corner.cluster.wait_for(lambda: corner.items("statefulsets") == [], "the set to go")
    assert corner.items("pods") == []
