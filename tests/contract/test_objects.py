"""Create, read, patch and delete: what the portal relies on, whatever the server."""

import pytest

from clusters.k8s.values import AlreadyExists, Conflict, Invalid, NotFound, Refused, StateMoved
from tests.contract.conftest import Server, Site
from tests.contract.objects import job, opened, pods_of, release, unsuspend, wait_for


def test_the_server_says_its_version(server: Server) -> None:
    assert server.gateway.version()["gitVersion"].startswith("v1.")


def test_a_created_object_has_an_identity_and_a_version(server: Server) -> None:
    created = server.gateway.create("jobs", server.namespace, job("a"))
    found = server.gateway.get("jobs", server.namespace, "a")

    assert created["metadata"]["uid"] == found["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"].isdigit()
    assert found["metadata"]["creationTimestamp"].endswith("Z")
    assert found["spec"]["suspend"] is True


def test_a_name_is_taken_once(server: Server) -> None:
    server.gateway.create("jobs", server.namespace, job("a"))

    with pytest.raises(AlreadyExists):
        server.gateway.create("jobs", server.namespace, job("a"))


def test_what_is_not_there_is_not_found(server: Server) -> None:
    with pytest.raises(NotFound):
        server.gateway.get("jobs", server.namespace, "nothing")
    with pytest.raises(NotFound):
        server.gateway.delete("jobs", server.namespace, "nothing", uid="x")


def test_a_namespace_that_is_not_there_is_not_found(server: Server) -> None:
    with pytest.raises(NotFound):
        server.gateway.create("jobs", "no-such-namespace", job("a"))


def test_nothing_is_created_in_a_namespace_that_is_being_deleted(site: Site, server: Server) -> None:
    ending = f"{server.namespace}-ending"
    site.open_namespace(ending)
    held = job("held")
    held["metadata"]["finalizers"] = ["example.org/held"]
    server.gateway.create("jobs", ending, held)
    site.close_namespace(ending)
    try:
        with pytest.raises(Refused, match=f"namespace {ending} because it is being terminated"):
            server.gateway.create("jobs", ending, job("late"))
    finally:
        server.gateway.patch_json("jobs", ending, "held", [{"op": "remove", "path": "/metadata/finalizers"}])


def test_an_object_that_breaks_a_rule_is_invalid_and_says_where(server: Server) -> None:
    broken = job("a")
    broken["spec"]["template"]["spec"]["restartPolicy"] = "Always"

    with pytest.raises(Invalid, match="restartPolicy") as caught:
        server.gateway.create("jobs", server.namespace, broken)

    assert not isinstance(caught.value, StateMoved)


def test_two_volumes_of_one_name_are_invalid(server: Server) -> None:
    broken = job("a")
    broken["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]

    with pytest.raises(Invalid, match=r"volumes\[1\].name: Duplicate value"):
        server.gateway.create("jobs", server.namespace, broken)


def test_requests_follow_limits_in_pods_and_not_in_the_template(server: Server) -> None:
    created = server.gateway.create("jobs", server.namespace, job("template"))
    pod = opened(server, "a", workers=1)[0]

    assert created["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


def test_a_body_without_a_kind_is_refused(server: Server) -> None:
    with pytest.raises((Refused, Invalid)):
        server.gateway.create("jobs", server.namespace, {"metadata": {"name": "a"}, "kind": "Pod", "apiVersion": "v1"})


def test_a_deletion_with_another_uid_spares_the_object(server: Server) -> None:
    server.gateway.create("jobs", server.namespace, job("a"))

    with pytest.raises(Conflict):
        server.gateway.delete("jobs", server.namespace, "a", uid="00000000-0000-0000-0000-000000000000")

    assert server.gateway.get("jobs", server.namespace, "a")


def test_a_deletion_in_the_foreground_is_over_only_when_the_pods_are(server: Server) -> None:
    opened(server, "a")
    uid = server.gateway.get("jobs", server.namespace, "a")["metadata"]["uid"]

    server.gateway.delete("jobs", server.namespace, "a", uid=uid)

    def is_gone() -> bool:
        try:
            server.gateway.get("jobs", server.namespace, "a")
        except NotFound:
            return True
        return False

    wait_for(is_gone, "the Job is gone")
    assert pods_of(server, "a") == []


def test_a_patch_whose_test_fails_changes_nothing(server: Server) -> None:
    uid = server.gateway.create("jobs", server.namespace, job("a"))["metadata"]["uid"]

    with pytest.raises(StateMoved):
        server.gateway.patch_json("jobs", server.namespace, "a", unsuspend("another uid"))
    assert server.gateway.get("jobs", server.namespace, "a")["spec"]["suspend"] is True

    server.gateway.patch_json("jobs", server.namespace, "a", unsuspend(uid))
    with pytest.raises(StateMoved):
        server.gateway.patch_json("jobs", server.namespace, "a", unsuspend(uid))


def test_a_patch_that_breaks_a_rule_differs_from_one_that_came_late(server: Server) -> None:
    server.gateway.create("jobs", server.namespace, job("a"))

    with pytest.raises(Invalid) as caught:
        server.gateway.patch_json(
            "jobs", server.namespace, "a", [{"op": "replace", "path": "/spec/completions", "value": -1}]
        )

    assert not isinstance(caught.value, StateMoved)


def test_pods_of_an_opened_job_wait_at_the_gate_each_with_its_index(server: Server) -> None:
    pods = opened(server, "a", workers=3)

    assert [pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods] == ["0", "1", "2"]
    assert not any(pod["spec"].get("nodeName") for pod in pods)
    for pod in pods:
        (condition,) = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


def test_a_pod_at_the_gate_gets_no_further_gate_and_no_node(server: Server) -> None:
    pod = opened(server, "a", workers=1)[0]
    place = ("pods", server.namespace, pod["metadata"]["name"])
    gate = {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "example.org/other"}}
    node = {"op": "add", "path": "/spec/nodeName", "value": server.node}

    with pytest.raises(Invalid, match=r"spec.schedulingGates\[1\].name"):
        server.gateway.patch_json(*place, [gate])
    with pytest.raises(Invalid, match="spec: Forbidden"):
        server.gateway.patch_json(*place, [node])


def test_a_bound_pod_carries_the_zone_of_its_node_and_no_gate(server: Server) -> None:
    pod = opened(server, "a", workers=1)[0]
    name, key = pod["metadata"]["name"], "topology.kubernetes.io/zone"
    server.gateway.patch_json("pods", server.namespace, name, release(pod, server.node))

    def bound() -> bool:
        return "nodeName" in server.gateway.get("pods", server.namespace, name)["spec"]

    wait_for(bound, "the pod is bound")
    found = server.gateway.get("pods", server.namespace, name)
    zone = server.gateway.get("nodes", "", server.node)["metadata"]["labels"][key]
    assert found["metadata"]["labels"][key] == zone
    assert "schedulingGates" not in found["spec"]


def test_a_released_pod_starts_on_the_node_that_it_was_pinned_to(server: Server) -> None:
    pods = opened(server, "a")

    for pod in pods:
        server.gateway.patch_json("pods", server.namespace, pod["metadata"]["name"], release(pod, server.node))

    running = wait_for(lambda: _running(server, "a"), "both pods run")
    assert {pod["spec"]["nodeName"] for pod in running} == {server.node}


def test_a_pod_is_released_once_and_stays_pinned(server: Server) -> None:
    pod = opened(server, "a", workers=1)[0]
    name = pod["metadata"]["name"]
    server.gateway.patch_json("pods", server.namespace, name, release(pod, server.node))

    with pytest.raises(StateMoved):
        server.gateway.patch_json("pods", server.namespace, name, release(pod, "elsewhere"))
    with pytest.raises(Invalid) as caught:
        server.gateway.patch_json("pods", server.namespace, name, [{"op": "remove", "path": "/spec/affinity"}])
    assert not isinstance(caught.value, StateMoved)


def test_a_pod_pinned_to_a_node_that_is_not_there_stays_pending_and_says_why(server: Server) -> None:
    pod = opened(server, "a", workers=1)[0]
    name = pod["metadata"]["name"]

    server.gateway.patch_json("pods", server.namespace, name, release(pod, "no-such-node"))

    def unschedulable() -> bool:
        status = server.gateway.get("pods", server.namespace, name)["status"]
        return any(each.get("reason") == "Unschedulable" for each in status["conditions"])

    wait_for(unschedulable, "the scheduler gives up")
    assert server.gateway.get("pods", server.namespace, name)["status"]["phase"] == "Pending"


def _running(server: Server, run: str) -> list[dict[str, dict[str, str]]] | None:
    pods = pods_of(server, run)
    return pods if all(pod["status"]["phase"] == "Running" for pod in pods) else None
