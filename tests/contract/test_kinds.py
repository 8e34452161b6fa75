"""Objects beside Jobs that training runs become: bare pods and StatefulSets, whatever the server."""

import pytest

from clusters.k8s.values import Invalid, NotFound, Refused, StateMoved
from tests.contract.conftest import Server
from tests.contract.objects import GATE, Json, job, release, wait_for

ORDINAL = "apps.kubernetes.io/pod-index"


def pod(name: str, **spec: object) -> Json:
    """A gated bare pod; `run` is its name."""
    template = job(name)["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"run": name}},
        "spec": {**template["spec"], **spec},
    }


def stateful_set(name: str, replicas: int, policy: str = "Parallel") -> Json:
    """A StatefulSet whose pods wait at a gate; `run` is its name."""
    template = job(name)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"run": name}},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "podManagementPolicy": policy,
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"run": name}},
            "template": template,
        },
    }


def pods_of(server: Server, run: str) -> list[Json]:
    items = server.gateway.list("pods", server.namespace, labels=f"run={run}")["items"]
    return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))


def test_a_bare_pod_waits_at_its_gate_and_runs_where_it_is_pinned(server: Server) -> None:
    made = server.gateway.create("pods", server.namespace, pod("alone"))
    assert made["spec"]["schedulingGates"] == [{"name": GATE}]

    server.gateway.patch_json("pods", server.namespace, "alone", release(made, server.node))

    found = wait_for(lambda: _running(server, "alone"), "the pod runs")
    assert found["spec"]["nodeName"] == server.node
    with pytest.raises(StateMoved):
        server.gateway.patch_json("pods", server.namespace, "alone", release(made, server.node))


def _running(server: Server, name: str) -> Json | None:
    found = server.gateway.get("pods", server.namespace, name)
    return found if found["status"]["phase"] == "Running" else None


def test_a_runtime_class_that_is_not_there_is_refused_by_its_name(server: Server) -> None:
    with pytest.raises(Refused, match='RuntimeClass "nothing" not found'):
        server.gateway.create("pods", server.namespace, pod("alone", runtimeClassName="nothing"))


def test_huge_pages_alone_are_invalid(server: Server) -> None:
    body = pod("alone")
    body["spec"]["containers"][0]["resources"] = {"limits": {"hugepages-2Mi": "4Mi"}}

    with pytest.raises(Invalid, match="HugePages require cpu or memory"):
        server.gateway.create("pods", server.namespace, body)


@pytest.mark.parametrize(("policy", "count"), [("Parallel", 3), ("OrderedReady", 1)])
def test_a_stateful_set_makes_gated_pods_at_once_or_waits_for_the_first(
    server: Server, policy: str, count: int
) -> None:
    server.gateway.create("statefulsets", server.namespace, stateful_set("ranks", 3, policy))

    pods = wait_for(lambda: _exactly(pods_of(server, "ranks"), count), f"{count} pods")

    assert [each["metadata"]["name"] for each in pods] == [f"ranks-{number}" for number in range(count)]
    assert [each["metadata"]["labels"][ORDINAL] for each in pods] == [str(number) for number in range(count)]
    assert {(each["spec"]["hostname"], each["spec"]["subdomain"]) for each in pods} == {
        (each["metadata"]["name"], "ranks") for each in pods
    }
    assert all(each["spec"]["schedulingGates"] == [{"name": GATE}] for each in pods)


def test_a_pod_of_a_stateful_set_that_is_deleted_comes_again_under_its_name(server: Server) -> None:
    server.gateway.create("statefulsets", server.namespace, stateful_set("ranks", 2))
    first = wait_for(lambda: _exactly(pods_of(server, "ranks"), 2), "both pods")[1]["metadata"]

    server.gateway.delete("pods", server.namespace, first["name"], uid=first["uid"])

    def came_again() -> bool:
        now = [each["metadata"] for each in pods_of(server, "ranks")]
        return [each["name"] for each in now] == ["ranks-0", "ranks-1"] and now[1]["uid"] != first["uid"]

    wait_for(came_again, "another ranks-1")


def test_a_stateful_set_deleted_in_the_foreground_is_over_only_when_its_pods_are(server: Server) -> None:
    uid = server.gateway.create("statefulsets", server.namespace, stateful_set("ranks", 2))["metadata"]["uid"]
    wait_for(lambda: _exactly(pods_of(server, "ranks"), 2), "both pods")

    server.gateway.delete("statefulsets", server.namespace, "ranks", uid=uid)

    def is_gone() -> bool:
        try:
            server.gateway.get("statefulsets", server.namespace, "ranks")
        except NotFound:
            return True
        return False

    wait_for(is_gone, "the set is gone")
    assert pods_of(server, "ranks") == []


def _exactly(pods: list[Json], count: int) -> list[Json] | None:
    return pods if len(pods) == count else None
