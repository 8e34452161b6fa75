"""The policies against by-passes on a real API server: two teams' own tokens, and the controllers of Kubernetes."""

import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.manifests import drift, guards, names, patches, rights, spaces
from clusters.manifests.guards import GuardValues, Mode
from clusters.manifests.spaces import SpaceValues
from tests.contract.objects import job, unsuspend, wait_for
from tests.kube.admin import Json, path_of
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

A, B = "guard-vision", "guard-speech"
DOMAIN = names.DOMAIN
PORTAL = "system:serviceaccount:muster-system:muster"
VALUES = GuardValues(domain=DOMAIN, installation="default", user=PORTAL, resources=("nvidia.com/gpu",))
MARKS = {f"{DOMAIN}/run": "forged", f"{DOMAIN}/installation": "default"}
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
ALL = ["create", "get", "list", "watch", "patch", "update", "delete"]


@dataclass(frozen=True)
class Person:
    """Somebody with a token of a service account of their own."""

    http: httpx.Client

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, str]:
        """One request: status code, and the words of the answer."""
        answer = self.http.request(method, path, json=body, headers={"Content-Type": kind})
        return answer.status_code, answer.json().get("message", "")

    def create(self, body: Json) -> tuple[int, str]:
        return self.ask("POST", path_of(body["kind"], body["metadata"]["namespace"]), body)


@dataclass(frozen=True)
class Site:
    plane: ControlPlane
    alice: Person
    portal: Gateway

    def pods(self, name: str) -> list[Json]:
        return self.plane.admin.items("Pod", A, labels=f"run={name}")


@pytest.fixture(scope="module")
def site(kube_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two spaces as the portal renders them; Alice may do everything with pods and workloads in the first."""
    for namespace in (A, B):
        values = SpaceValues(
            domain=DOMAIN, installation="default", team=namespace, namespace=namespace, gpus={"nvidia.com/gpu": 64}
        )
        for body in [*spaces.objects(values), rights.team_binding(namespace)]:
            kube_plane.admin.create(body)
    for body in _alice():
        kube_plane.admin.create(body)
    wait_for(lambda: _has_default_account(kube_plane), "the namespaces are furnished", timeout_s=30)
    token = kube_plane.admin.token_of(A, "alice")
    ca = tmp_path_factory.mktemp("ca") / "ca.crt"
    ca.write_text(kube_plane.ca)
    headers = {"Authorization": f"Bearer {token}"}
    context = ssl.create_default_context(cafile=str(ca))
    with (
        httpx.Client(base_url=kube_plane.server, verify=context, trust_env=False, headers=headers) as http,
        Gateway(Connection(server=kube_plane.server, ca_data=kube_plane.ca, token=kube_plane.token)) as gateway,
    ):
        yield Site(kube_plane, Person(http), gateway)
    for namespace in (A, B):
        kube_plane.admin.delete("Namespace", "", namespace)


@pytest.fixture
def denying(site: Site) -> Iterator[Site]:
    """All policies refuse."""
    yield from _guarded(site, "deny")


@pytest.fixture
def auditing(site: Site) -> Iterator[Site]:
    """All policies only tell."""
    yield from _guarded(site, "audit")


def _guarded(site: Site, mode: Mode) -> Iterator[Site]:
    bodies = guards.objects(VALUES, mode)
    for body in bodies:
        site.plane.admin.create(body)
    if mode == "deny":
        # Each of the three takes some seconds to reach every request.
        for body in (_pod("probe", gpus=1), _pod("probe", labels=MARKS)):
            wait_for(lambda body=body: _is_refused(site, body), "the policy is active", timeout_s=40)  # type: ignore[misc]
        time.sleep(2)
    yield site
    for kind in ("Job", "Deployment", "Pod"):
        site.plane.admin.delete_all(kind, A)
    for body in bodies:
        site.plane.admin.delete(body["kind"], "", body["metadata"]["name"])


def _alice() -> list[Json]:
    metadata = {"name": "alice", "namespace": A}
    kinds = {"": ["pods", "services"], "apps": ["deployments"], "batch": ["jobs"]}
    rules = [{"apiGroups": [group], "resources": resources, "verbs": ALL} for group, resources in kinds.items()]
    subject = {"kind": "ServiceAccount", "name": "alice", "namespace": A}
    role = {"apiGroup": rights.RBAC, "kind": "Role", "name": "alice"}
    api = f"{rights.RBAC}/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]},
    ]


def _has_default_account(plane: ControlPlane) -> bool:
    return all(
        "default" in [each["metadata"]["name"] for each in plane.admin.items("ServiceAccount", at)] for at in (A, B)
    )


def _is_refused(site: Site, body: Json) -> bool:
    status, _text = site.alice.create(body)
    if status == 201:
        site.plane.admin.delete("Pod", A, body["metadata"]["name"])
    return status == 403


def _pod(name: str, *, gpus: int = 0, labels: dict[str, str] | None = None, gated: bool = False) -> Json:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    spec: Json = {"containers": [{"name": "main", "image": "example.org/x:1", "resources": resources}]}
    if gated:
        spec["schedulingGates"] = [{"name": names.gate(DOMAIN)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": A, "labels": labels or {}},
        "spec": spec,
    }


def _job(name: str, *, labels: dict[str, str], gpus: int = 1, gated: bool = True) -> Json:
    body = job(name, workers=2, gated=gated)
    body["metadata"] |= {"namespace": A, "labels": {"run": name, **labels}}
    template = body["spec"]["template"]
    template["metadata"] = {"labels": {"run": name, **labels}}
    template["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}
    return body


def _opened(site: Site, name: str) -> list[Json]:
    """A Job of the portal, made and opened by its own account; its pods at the gate."""
    made = site.portal.create("jobs", A, _job(name, labels=MARKS))
    site.portal.patch_json("jobs", A, name, unsuspend(made["metadata"]["uid"]))
    return wait_for(lambda: pods if len(pods := site.pods(name)) == 2 else None, "both pods", timeout_s=30)


def _pods_path(name: str = "", namespace: str = A) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}".rstrip("/")


def test_what_the_server_stores_is_what_was_sent(auditing: Site) -> None:
    for body in guards.objects(VALUES, "audit"):
        (found,) = [
            each
            for each in auditing.plane.admin.items(body["kind"])
            if each["metadata"]["name"] == body["metadata"]["name"]
        ]
        assert drift.judge(body, found, DOMAIN).differences == ()
        # The server has typed the expressions against each kind: a wrong field would stand here.
        assert (
            not (found.get("status") or {}).get("typeChecking", {}).get("expressionWarnings")
            or "labels" in (body["metadata"]["name"])
        )


def test_audit_tells_and_refuses_nothing(auditing: Site) -> None:
    assert auditing.alice.create(_pod("loud", gpus=1)) == (201, "")

    def warned() -> bool:
        answer = auditing.alice.http.post(f"{_pods_path()}?dryRun=All", json=_pod("loud2", gpus=1))
        assert answer.status_code == 201
        return any("submit the run there" in text for text in answer.headers.get_list("warning"))

    wait_for(warned, "a warning", timeout_s=40)


def test_one_team_has_nothing_to_do_in_the_namespace_of_another(site: Site) -> None:
    for method, path, body in (
        ("GET", _pods_path(namespace=B), None),
        ("GET", f"/apis/batch/v1/namespaces/{B}/jobs", None),
        ("POST", _pods_path(namespace=B), {**_pod("x"), "metadata": {"name": "x", "namespace": B}}),
        ("DELETE", _pods_path("x", B), None),
        ("GET", f"/api/v1/namespaces/{B}/secrets", None),
        ("GET", f"/api/v1/namespaces/{A}/secrets", None),
        ("PATCH", f"/api/v1/namespaces/{A}", {"metadata": {"labels": {"muster.internal/tenant": None}}}),
        ("DELETE", f"/api/v1/namespaces/{A}/resourcequotas/muster", None),
        ("DELETE", f"/apis/{guards.API_VERSION}/validatingadmissionpolicies/{guards.GATES}", None),
    ):
        kind = MERGE if method == "PATCH" else "application/json"
        status, text = site.alice.ask(method, path, body, kind=kind)
        assert (status, "forbidden" in text) == (403, True), (method, path, text)


def test_deny_closes_the_ways_around_for_a_teams_own_token(denying: Site) -> None:
    alice, (gated, _other) = denying.alice, _opened(denying, "held")
    name = gated["metadata"]["name"]
    open_gate = [{"op": "remove", "path": "/spec/schedulingGates"}]
    cases = {
        "open a gate": alice.ask("PATCH", _pods_path(name), open_gate, kind=JSON_PATCH),
        "delete a gated pod": alice.ask("DELETE", _pods_path(name)),
        "change our label": alice.ask(
            "PATCH", _pods_path(name), {"metadata": {"labels": {f"{DOMAIN}/run": "mine"}}}, kind=MERGE
        ),
        "take our label": alice.ask(
            "PATCH", _pods_path(name), {"metadata": {"labels": {f"{DOMAIN}/run": None}}}, kind=MERGE
        ),
        "a GPU pod": alice.create(_pod("grab", gpus=1)),
        "a GPU pod with forged labels": alice.create(_pod("grab", gpus=1, labels=MARKS)),
        "a Job with forged labels": alice.create(_job("grab", labels=MARKS)),
        "forged labels on a Job of the portal": alice.ask(
            "PATCH",
            f"/apis/batch/v1/namespaces/{A}/jobs/held",
            {"metadata": {"annotations": {f"{DOMAIN}/plan": "n1"}}},
            kind=MERGE,
        ),
    }
    assert {what: status for what, (status, _text) in cases.items()} == dict.fromkeys(cases, 403)
    for _status, text in cases.values():
        assert "ValidatingAdmissionPolicy 'muster-guard-" in text
    assert all(names.is_gated(pod, DOMAIN) for pod in denying.pods("held"))


def test_a_job_of_somebody_else_gets_no_gpu_pod_and_is_told_why(denying: Site) -> None:
    assert denying.alice.create({**_job("around", labels={}, gated=False), "spec": _open_spec("around")})[0] == 201

    def refusal() -> str | None:
        events = denying.plane.admin.items("Event", A)
        mine = [each for each in events if each["involvedObject"]["name"] == "around"]
        return next((each["message"] for each in mine if each["reason"] == "FailedCreate"), None)

    assert "Pods with GPUs come from Muster here" in wait_for(refusal, "the controller is refused", timeout_s=30)
    assert denying.pods("around") == []


def test_deny_leaves_a_teams_other_work_alone(denying: Site) -> None:
    assert denying.alice.create(_pod("cpu", labels={"app": "web"})) == (201, "")
    relabel = {"metadata": {"labels": {"app": "api"}}}
    assert denying.alice.ask("PATCH", _pods_path("cpu"), relabel, kind=MERGE)[0] == 200
    assert denying.alice.ask("DELETE", _pods_path("cpu"))[0] == 200


def test_deny_hinders_neither_the_portal_nor_the_controllers(denying: Site) -> None:
    pods = _opened(denying, "ours")
    nodes = [
        each["metadata"]["name"]
        for each in denying.plane.admin.items("Node")
        if int(each["status"]["allocatable"].get("nvidia.com/gpu", 0)) > 1
    ]
    for pod, node in zip(pods, nodes, strict=False):
        denying.portal.patch_json("pods", A, pod["metadata"]["name"], patches.release(pod, node, DOMAIN))
    # Bound by the scheduler, run and ended, finalizers taken by the Job controller.
    wait_for(lambda: _is_complete(denying, "ours"), "the Job is complete", timeout_s=60)

    made = _opened(denying, "dropped")
    uid = denying.portal.get("jobs", A, "dropped")["metadata"]["uid"]
    denying.portal.delete("jobs", A, "dropped", uid=uid)
    # Gated pods go with their Job: the garbage collector and the Job controller may delete them.
    assert made
    wait_for(lambda: denying.pods("dropped") == [], "its pods are gone", timeout_s=40)


def test_deny_lets_a_service_of_the_portal_scale_and_roll_out(denying: Site) -> None:
    denying.portal.create("deployments", A, _deployment("web", 3))
    wait_for(lambda: len(denying.pods("web")) == 3, "three replicas", timeout_s=30)
    scale = [{"op": "replace", "path": "/spec/replicas", "value": 1}]
    denying.portal.patch_json("deployments", A, "web", scale)
    wait_for(lambda: len(denying.pods("web")) == 1, "one replica", timeout_s=30)
    # The template's change makes the Deployment controller make another ReplicaSet with our labels.
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "example.org/x:2"}]
    denying.portal.patch_json("deployments", A, "web", image)
    wait_for(lambda: _images(denying, "web") >= {"example.org/x:2"}, "a pod of the new template", timeout_s=30)


def _images(site: Site, name: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in site.pods(name)}


def _is_complete(site: Site, name: str) -> bool:
    status = site.portal.get("jobs", A, name).get("status") or {}
    return any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions") or ())


def _open_spec(name: str) -> Json:
    spec: Json = _job(name, labels={}, gated=False)["spec"]
    return {**spec, "suspend": False}


def _deployment(name: str, replicas: int) -> Json:
    labels = {"run": name, **MARKS}
    pod = _pod(name, gpus=1, gated=True)["spec"]
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"run": name}}, "template": template}
    metadata = {"name": name, "namespace": A, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
