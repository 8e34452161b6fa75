"""Deployments: start, scale, roll out, clean up."""

from typing import Any

import pytest

from tests.clusters_running import MERGE_PATCH
from tests.simulated.conftest import GATE, Corner, pod_spec

pytestmark = pytest.mark.timeout(60)


def deployment(replicas: int, strategy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    spec = {**pod_spec(**more), "restartPolicy": "Always"}
    return {
        "metadata": {"name": "server"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "server"}},
            "template": {"metadata": {"labels": {"app": "server"}}, "spec": spec},
            **({"strategy": strategy} if strategy else {}),
        },
    }


def wait_ready(corner: Corner, count: int) -> dict[str, Any]:
    def probe() -> dict[str, Any]:
        status = corner.get("deployments", "server")["status"]
        held = (status.get("replicas", 0), status.get("readyReplicas", 0), status.get("updatedReplicas", 0))
        return status if held == (count, count, count) else {}

    return corner.cluster.wait_for(probe, f"{count} ready replicas")


def scale(corner: Corner, replicas: int) -> tuple[int, Any]:
    path = corner.path("deployments", "server") + "/scale"
    return corner.cluster.request("PATCH", path, {"spec": {"replicas": replicas}}, kind=MERGE_PATCH)


def test_a_deployment_scales_up_and_down(corner: Corner) -> None:
    corner.create("deployments", deployment(3))
    status = wait_ready(corner, 3)
    assert status["observedGeneration"] == 1
    assert corner.condition("deployments", "server", "Available")["status"] == "True"

    code, answer = scale(corner, 5)
    assert (code, answer["kind"], answer["spec"]["replicas"]) == (200, "Scale", 5)
    wait_ready(corner, 5)
    scale(corner, 2)
    wait_ready(corner, 2)

    corner.cluster.wait_for(lambda: len(corner.items("pods")) == 2, "two pods")
    assert corner.get("deployments", "server")["metadata"]["generation"] == 3


def test_scaling_down_gives_up_gated_replicas_first(corner: Corner) -> None:
    corner.create("deployments", deployment(3, **GATE))
    pods = corner.cluster.wait_for(lambda: found if len(found := corner.items("pods")) == 3 else [], "three pods")
    kept = pods[1]["metadata"]["name"]
    corner.patch("pods", kept, [{"op": "remove", "path": "/spec/schedulingGates/0"}])
    corner.cluster.wait_for(lambda: "Running" in corner.phases(), "the released replica")

    scale(corner, 1)

    corner.cluster.wait_for(lambda: len(corner.items("pods")) == 1, "one pod")
    assert corner.items("pods")[0]["metadata"]["name"] == kept


def test_a_roll_out_without_surge_never_has_more_pods(corner: Corner) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    corner.create("deployments", deployment(3, strategy, gpus=8))
    wait_ready(corner, 3)
    path = "/spec/template/spec/containers/0/image"
    most = 0

    corner.patch("deployments", "server", [{"op": "replace", "path": path, "value": "registry.example/serve:2"}])

    def rolled() -> bool:
        nonlocal most
        pods = corner.items("pods")
        most = max(most, sum("deletionTimestamp" not in each["metadata"] for each in pods))
        images = {each["spec"]["containers"][0]["image"] for each in pods}
        return len(pods) == 3 and images == {"registry.example/serve:2"}

    corner.cluster.wait_for(rolled, "the roll-out", timeout_s=20)
    wait_ready(corner, 3)
    assert most == 3
    assert len(corner.items("replicasets")) == 2
    note = corner.get("deployments", "server")["metadata"]["annotations"]
    assert note["deployment.kubernetes.io/revision"] == "2"


def test_a_roll_out_with_surge_keeps_all_replicas_ready(corner: Corner) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    corner.create("deployments", deployment(2, strategy))
    wait_ready(corner, 2)
    path = "/spec/template/spec/containers/0/image"
    least = 2

    corner.patch("deployments", "server", [{"op": "replace", "path": path, "value": "registry.example/serve:2"}])

    def rolled() -> bool:
        nonlocal least
        status = corner.get("deployments", "server")["status"]
        least = min(least, status.get("readyReplicas", 0))
        done = status.get("observedGeneration") == 2 and status.get("updatedReplicas") == 2
        return bool(done and status["replicas"] == 2)

    corner.cluster.wait_for(rolled, "the roll-out", timeout_s=20)
    assert least == 2


def test_a_deleted_replica_is_replaced(corner: Corner) -> None:
    corner.create("deployments", deployment(1))
    wait_ready(corner, 1)
    [first] = corner.items("pods")

    corner.cluster.request("DELETE", corner.path("pods", first["metadata"]["name"]))

    def replaced() -> bool:
        return [each["metadata"]["uid"] for each in corner.items("pods")] not in ([], [first["metadata"]["uid"]])

    corner.cluster.wait_for(replaced, "a new replica")
    wait_ready(corner, 1)


def test_deleting_a_deployment_takes_its_sets_and_pods(corner: Corner) -> None:
    corner.create("deployments", deployment(2))
    wait_ready(corner, 2)

    corner.cluster.request("DELETE", corner.path("deployments", "server"), {"propagationPolicy": "Foreground"})

    corner.cluster.wait_for(lambda: corner.items("deployments") == [], "the Deployment to go")
    assert corner.items("replicasets") == []
    assert corner.items("pods") == []


def test_a_selector_that_misses_the_template_is_refused(corner: Corner) -> None:
    body = deployment(1)
    body["spec"]["selector"] = {"matchLabels": {"app": "other"}}

    code, answer = corner.cluster.request("POST", corner.path("deployments"), body)

    assert code == 422
    assert "`selector` does not match template `labels`" in answer["message"]


def test_a_service_gets_an_address(corner: Corner) -> None:
    spec = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
    made = corner.create("services", {"metadata": {"name": "server"}, "spec": spec})

    assert made["spec"]["clusterIP"].startswith("10.")
    assert (made["spec"]["type"], made["spec"]["ports"][0]["protocol"]) == ("ClusterIP", "TCP")
