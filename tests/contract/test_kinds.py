"""Objects beside Jobs that training runs become: bare pods, StatefulSets and CronJobs, whatever the server."""

import pytest

from clusters.k8s.values import Invalid, NotFound, Refused, StateMoved
from clusters.manifests import patches
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


def cron_job(name: str, **spec: object) -> Json:
    """A CronJob that comes due each minute; its Jobs are suspended and `run` is its name."""
    made = job(name)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "labels": {"run": name}},
        "spec": {
            "schedule": "* * * * *",
            "timeZone": "Europe/Berlin",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"metadata": {"labels": {"run": name}}, "spec": made["spec"]},
            **spec,
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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schedule": "60 * * * *"}, r"spec.schedule: Invalid value.*above maximum \(59\)"),
        ({"schedule": "* * * *"}, "spec.schedule: Invalid value.*expected exactly 5 fields, found 4"),
        ({"schedule": "0 0 * * 7"}, r"spec.schedule: Invalid value.*above maximum \(6\)"),
        ({"schedule": "*/0 * * * *"}, "spec.schedule: Invalid value.*step of range should be a positive number"),
        ({"schedule": "5-1 * * * *"}, "spec.schedule: Invalid value.*beyond end of range"),
        ({"schedule": "TZ=UTC 0 0 * * *"}, "spec.schedule: Invalid value"),
        ({"timeZone": "Mars/Olympus"}, "spec.timeZone: Invalid value.*unknown time zone"),
        ({"timeZone": "Local"}, "spec.timeZone: Invalid value"),
        ({"concurrencyPolicy": "Never"}, "spec.concurrencyPolicy: Unsupported value"),
        ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: Invalid value"),
        ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit: Invalid value"),
    ],
)
def test_a_wrong_cron_job_is_refused_by_its_field(server: Server, wrong: Json, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        server.gateway.create("cronjobs", server.namespace, cron_job("often", **wrong))


@pytest.mark.parametrize("text", ["@daily", "0 0 ? * mon-FRI", "*/7,3-9/2 1 1 jan *", "0 0 31 2 *"])
def test_a_cron_text_is_taken(server: Server, text: str) -> None:
    made = server.gateway.create("cronjobs", server.namespace, cron_job("often", schedule=text))

    assert (made["spec"]["successfulJobsHistoryLimit"], made["spec"]["failedJobsHistoryLimit"]) == (3, 1)
    assert made["spec"]["suspend"] is False


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_job_that_comes_due_is_born_suspended_and_can_be_taken_over(server: Server) -> None:
    made = server.gateway.create("cronjobs", server.namespace, cron_job("often"))
    (born,) = wait_for(lambda: jobs_of(server), "its Job is made", 80)

    (owner,) = born["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", made["metadata"]["uid"], True)
    minute = born["metadata"]["name"].removeprefix("often-")
    assert (len(minute), minute.isdigit()) == (8, True)
    assert born["spec"]["suspend"] is True
    assert born["metadata"]["labels"] == {"run": "often"}

    # While it is suspended its template's labels may change, and its pods get them.
    name, uid = born["metadata"]["name"], born["metadata"]["uid"]
    server.gateway.patch_json("jobs", server.namespace, name, patches.adopt(born, {"run": "child", "x.y/attempt": "1"}))
    server.gateway.patch_json("jobs", server.namespace, name, patches.unsuspend(uid))
    pods = wait_for(lambda: _exactly(pods_of(server, "child"), 2), "its pods")
    assert all(each["spec"]["schedulingGates"] == [{"name": GATE}] for each in pods)
    assert {each["spec"]["hostname"] for each in pods} == {f"{name}-0", f"{name}-1"}
    listed = server.gateway.get("cronjobs", server.namespace, "often")["status"]["active"]
    assert [each["uid"] for each in listed] == [uid]

    # Deleted by itself, it leaves the Job alone.
    server.gateway.delete("cronjobs", server.namespace, "often", uid=made["metadata"]["uid"], propagation="Orphan")
    wait_for(lambda: "ownerReferences" not in _job(server, name)["metadata"], "the Job stands alone")
    assert len(pods_of(server, "child")) == 2


def jobs_of(server: Server) -> list[Json]:
    return list(server.gateway.list("jobs", server.namespace)["items"] or ())


def _job(server: Server, name: str) -> Json:
    return dict(server.gateway.get("jobs", server.namespace, name))


def _exactly(pods: list[Json], count: int) -> list[Json] | None:
    return pods if len(pods) == count else None
