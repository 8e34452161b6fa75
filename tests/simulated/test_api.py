"""Verbs, selectors, paging, patches and refusals of the API server."""

from typing import Any

import pytest

from tests.clusters_running import MERGE_PATCH, SimulatedCluster
from tests.simulated.conftest import GATE, Corner, job, pin, pod, release

pytestmark = pytest.mark.timeout(60)
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def test_with_a_wrong_token_every_object_is_a_401(cluster: SimulatedCluster) -> None:
    code, answer = cluster.request("GET", "/api/v1/nodes", token="wrong")

    assert (code, answer["kind"], answer["reason"], answer["code"]) == (401, "Status", "Unauthorized", 401)


# As a 1.36 server with its defaults answers a request that brings no token: whom it refuses what, and where.
AT_TOP, IN_DEFAULT = " at the cluster scope", ' in the namespace "default"'
PODS, JOBS = 'resource "pods" in API group ""', 'resource "jobs" in API group "batch"'
REVIEWS, REVIEWS_GROUP = "selfsubjectaccessreviews", "authorization.k8s.io"
DEFAULT = "/api/v1/namespaces/default"
ANONYMOUS: list[tuple[str, str, str, dict[str, str]]] = [
    ("GET /api/v1/pods", "pods is ", f"list {PODS}{AT_TOP}", {"kind": "pods"}),
    (f"GET {DEFAULT}/pods?watch=1", "pods is ", f"watch {PODS}{IN_DEFAULT}", {"kind": "pods"}),
    (f"DELETE {DEFAULT}/pods", "pods is ", f"deletecollection {PODS}{IN_DEFAULT}", {"kind": "pods"}),
    (f"DELETE {DEFAULT}/pods/x", 'pods "x" is ', f"delete {PODS}{IN_DEFAULT}", {"name": "x", "kind": "pods"}),
    (
        f"PUT {DEFAULT}/pods/x/status",
        'pods "x" is ',
        f'update resource "pods/status" in API group ""{IN_DEFAULT}',
        {"name": "x", "kind": "pods"},
    ),
    (
        "POST /apis/batch/v1/namespaces/default/jobs",
        "jobs.batch is ",
        f"create {JOBS}{IN_DEFAULT}",
        {"group": "batch", "kind": "jobs"},
    ),
    (
        f"GET {DEFAULT}",
        'namespaces "default" is ',
        f'get resource "namespaces" in API group ""{IN_DEFAULT}',
        {"name": "default", "kind": "namespaces"},
    ),
    (
        f"POST /apis/{REVIEWS_GROUP}/v1/{REVIEWS}",
        f"{REVIEWS}.{REVIEWS_GROUP} is ",
        f'create resource "{REVIEWS}" in API group "{REVIEWS_GROUP}"{AT_TOP}',
        {"group": REVIEWS_GROUP, "kind": REVIEWS},
    ),
    (
        "GET /apis/no.such/v1/things",
        "things.no.such is ",
        f'list resource "things" in API group "no.such"{AT_TOP}',
        {"group": "no.such", "kind": "things"},
    ),
    ("GET /apis/batch/v1", "", 'get path "/apis/batch/v1"', {}),
    ("GET /nonsense", "", 'get path "/nonsense"', {}),
]


@pytest.mark.parametrize(("line", "what", "deed", "details"), ANONYMOUS, ids=[case[0] for case in ANONYMOUS])
def test_without_a_token_a_request_is_anonymous_and_forbidden(
    cluster: SimulatedCluster, line: str, what: str, deed: str, details: dict[str, str]
) -> None:
    method, _space, path = line.partition(" ")
    code, answer = cluster.request(method, path, token="")

    assert (code, answer["reason"], answer["details"]) == (403, "Forbidden", details)
    assert answer["message"] == f'{what}forbidden: User "system:anonymous" cannot {deed}'


@pytest.mark.parametrize("token", ["", "wrong"])
def test_the_failure_switches_are_the_tokens_alone(cluster: SimulatedCluster, token: str) -> None:
    assert cluster.request("POST", "/simulated/outage", {"seconds": 1}, token=token)[0] == 401


def test_health_and_version_are_open_but_a_wrong_token_is_not(cluster: SimulatedCluster) -> None:
    assert cluster.request("GET", "/readyz", token="") == (200, "ok")
    assert cluster.request("GET", "/version", token="")[1]["gitVersion"] == "v1.36.3+simulated"
    assert cluster.request("GET", "/version", token="wrong")[0] == 401


def test_discovery_names_groups_and_kinds(cluster: SimulatedCluster) -> None:
    groups = {group["name"] for group in cluster.request("GET", "/apis")[1]["groups"]}
    kinds = {each["name"] for each in cluster.request("GET", "/apis/batch/v1")[1]["resources"]}

    ours = {
        f"{name}.k8s.io"
        for name in ("scheduling", "authorization", "authentication", "node", "networking", "admissionregistration")
    }
    assert groups == {"apps", "batch"} | ours
    assert kinds == {"jobs", "jobs/status", "cronjobs", "cronjobs/status"}
    assert cluster.request("GET", "/apis/batch/v2")[0] == 404
    assert cluster.request("GET", "/api/v1/unicorns")[0] == 404


def test_a_created_object_has_identity_and_defaults(corner: Corner) -> None:
    made = corner.create("pods", pod("one", **GATE))

    assert made["kind"] == "Pod"
    assert {"uid", "resourceVersion", "creationTimestamp", "generation"} <= set(made["metadata"])
    assert made["status"]["phase"] == "Pending"
    assert made["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "1"
    assert {each["tolerationSeconds"] for each in made["spec"]["tolerations"]} == {300}


def test_the_same_name_twice_is_a_409(corner: Corner) -> None:
    corner.create("pods", pod("one", **GATE))
    code, answer = corner.cluster.request("POST", corner.path("pods"), pod("one"))

    assert (code, answer["reason"], answer["details"]["name"]) == (409, "AlreadyExists", "one")


def test_generated_names_differ(corner: Corner) -> None:
    body = pod("", **GATE)
    body["metadata"] = {"generateName": "worker-"}
    names = {corner.create("pods", body)["metadata"]["name"] for _ in range(5)}

    assert len(names) == 5
    assert all(name.startswith("worker-") and len(name) == 12 for name in names)


def test_a_missing_namespace_is_a_404(cluster: SimulatedCluster) -> None:
    code, answer = cluster.request("POST", "/api/v1/namespaces/nowhere/pods", pod("one"))

    assert (code, answer["message"]) == (404, 'namespaces "nowhere" not found')


def test_a_dry_run_answers_as_if_and_stores_nothing(corner: Corner) -> None:
    code, answer = corner.cluster.request("POST", corner.path("jobs") + "?dryRun=All&fieldManager=me", job("trial"))

    assert (code, answer["spec"]["backoffLimit"]) == (201, 0)
    assert corner.cluster.request("GET", corner.path("jobs", "trial"))[0] == 404


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=app=a", ["a"]),
        ("labelSelector=app!=a", ["b", "c"]),
        ("labelSelector=app in (a,b)", ["a", "b"]),
        ("labelSelector=app notin (a,b),app", ["c"]),
        ("labelSelector=!missing", ["a", "b", "c"]),
        ("labelSelector=missing", []),
        ("fieldSelector=metadata.name=b", ["b"]),
        ("fieldSelector=status.phase!=Succeeded,metadata.name!=b", ["a", "c"]),
        ("fieldSelector=spec.nodeName=", ["a", "b", "c"]),
    ],
)
def test_selectors_choose(corner: Corner, query: str, names: list[str]) -> None:
    for name in ("a", "b", "c"):
        corner.create("pods", pod(name, **GATE))

    found = corner.items("pods", query.replace(" ", "%20").replace("!", "%21"))

    assert [each["metadata"]["name"] for each in found] == names
    assert all("kind" not in each for each in found)


def test_an_unknown_field_in_a_selector_is_a_400(corner: Corner) -> None:
    code, answer = corner.cluster.request("GET", corner.path("pods") + "?fieldSelector=spec.colour=red")

    assert (code, answer["message"]) == (400, "field label not supported: spec.colour")


def test_an_empty_list_is_a_list_or_on_demand_null(corner: Corner) -> None:
    _, answer = corner.cluster.request("GET", corner.path("services"))
    assert (answer["kind"], answer["items"]) == ("ServiceList", [])
    assert int(answer["metadata"]["resourceVersion"]) > 0

    corner.cluster.control("PUT", "/simulated/null-lists", {"on": True})
    _, answer = corner.cluster.request("GET", corner.path("services"))
    corner.cluster.control("PUT", "/simulated/null-lists", {"on": False})

    assert answer["items"] is None


def test_pages_cover_all_objects_once(corner: Corner) -> None:
    for number in range(5):
        corner.create("pods", pod(f"p{number}", **GATE))
    names, token, pages = [], "", 0
    while True:
        _, answer = corner.cluster.request("GET", corner.path("pods") + f"?limit=2&continue={token}")
        names += [each["metadata"]["name"] for each in answer["items"]]
        pages += 1
        token = answer["metadata"].get("continue", "")
        if not token:
            break

    assert (names, pages) == ([f"p{number}" for number in range(5)], 3)


def test_a_continue_token_from_before_a_compaction_is_a_410(corner: Corner) -> None:
    for number in range(3):
        corner.create("pods", pod(f"p{number}", **GATE))
    _, first = corner.cluster.request("GET", corner.path("pods") + "?limit=1")
    corner.cluster.control("POST", "/simulated/compact")

    code, answer = corner.cluster.request(
        "GET", corner.path("pods") + f"?limit=1&continue={first['metadata']['continue']}"
    )

    assert (code, answer["reason"]) == (410, "Expired")


def test_a_failed_test_of_a_json_patch_is_a_422_and_changes_nothing(corner: Corner) -> None:
    made = corner.create("pods", pod("one", **GATE))
    wrong = [
        {"op": "test", "path": "/metadata/uid", "value": "other"},
        {"op": "add", "path": "/metadata/labels/x", "value": "1"},
    ]

    code, answer = corner.patch("pods", "one", wrong)

    assert (code, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == "the server rejected our request due to an error in our request"
    assert corner.get("pods", "one")["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ([{"op": "remove", "path": "/spec/nothing"}], "application/json-patch+json", 422),
        ([{"op": "fly", "path": "/spec"}], "application/json-patch+json", 422),
        ({"op": "test"}, "application/json-patch+json", 400),
        ([1], MERGE_PATCH, 400),
        ({}, "application/apply-patch+yaml", 415),
        ({"metadata": {"labels": 5}}, MERGE_PATCH, 400),
    ],
)
def test_a_bad_patch_is_refused(corner: Corner, body: Any, kind: str, code: int) -> None:
    corner.create("pods", pod("one", **GATE))

    assert corner.cluster.request("PATCH", corner.path("pods", "one"), body, kind=kind)[0] == code


def test_merge_patches_set_and_remove(corner: Corner) -> None:
    corner.create("pods", pod("one", **GATE))
    change = {"metadata": {"annotations": {"note": "1"}, "labels": {"app": None}}}

    code, answer = corner.cluster.request("PATCH", corner.path("pods", "one"), change, kind=MERGE_PATCH)

    assert code == 200
    assert answer["metadata"]["annotations"] == {"note": "1"}
    assert answer["metadata"]["labels"] == {}


def test_a_strategic_patch_joins_lists_by_name(corner: Corner) -> None:
    corner.create("pods", pod("one", **GATE))
    change = {"spec": {"containers": [{"name": "main", "image": "registry.example/train:2"}]}}

    code, answer = corner.cluster.request("PATCH", corner.path("pods", "one"), change, kind=STRATEGIC_PATCH)

    assert (code, answer["spec"]["containers"][0]["image"]) == (200, "registry.example/train:2")
    assert answer["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "4"


def test_a_patch_that_changes_nothing_makes_no_version(corner: Corner) -> None:
    made = corner.create("pods", pod("one", **GATE))
    _, answer = corner.cluster.request("PATCH", corner.path("pods", "one"), {"metadata": {}}, kind=MERGE_PATCH)

    assert answer["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_stale_put_is_a_409(corner: Corner) -> None:
    stale = corner.create("pods", pod("one", **GATE))
    corner.patch("pods", "one", [{"op": "add", "path": "/metadata/labels/x", "value": "1"}])

    code, answer = corner.cluster.request("PUT", corner.path("pods", "one"), stale)

    assert (code, answer["reason"]) == (409, "Conflict")


def test_status_is_written_through_its_own_path_alone(corner: Corner) -> None:
    corner.create("pods", pod("one", **GATE))
    change = {"status": {"phase": "Running"}, "metadata": {"labels": {"seen": "yes"}}}

    _, plain = corner.cluster.request("PATCH", corner.path("pods", "one"), change, kind=MERGE_PATCH)
    assert (plain["status"]["phase"], plain["metadata"]["labels"]["seen"]) == ("Pending", "yes")
    _, status = corner.cluster.request("PATCH", corner.path("pods", "one") + "/status", change, kind=MERGE_PATCH)
    assert status["status"]["phase"] == "Running"


def test_a_delete_of_another_uid_is_a_409(corner: Corner) -> None:
    made = corner.create("pods", pod("one", **GATE))
    path = corner.path("pods", "one")

    code, answer = corner.cluster.request("DELETE", path, {"preconditions": {"uid": "other"}})
    assert code == 409
    assert made["metadata"]["uid"] in answer["message"]
    assert corner.cluster.request("DELETE", path, {"preconditions": {"uid": made["metadata"]["uid"]}})[0] == 200
    assert corner.cluster.request("GET", path)[0] == 404


def test_finalizers_hold_a_deleted_object(corner: Corner) -> None:
    body = pod("held", **GATE)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    corner.create("pods", body)

    corner.cluster.request("DELETE", corner.path("pods", "held"))
    assert "deletionTimestamp" in corner.get("pods", "held")["metadata"]
    code, _ = corner.patch("pods", "held", [{"op": "remove", "path": "/metadata/finalizers"}])

    assert code == 200
    assert corner.cluster.request("GET", corner.path("pods", "held"))[0] == 404


def test_a_namespace_takes_its_objects_with_it(cluster: SimulatedCluster) -> None:
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "short-lived"}})
    corner = Corner(cluster, "short-lived")
    corner.create("jobs", job("gang", 2))
    cluster.wait_for(lambda: len(corner.items("pods")) == 2, "pods")
    corner.create("pods", {**pod("held"), "metadata": {"name": "held", "finalizers": ["example.org/held"]}})

    cluster.request("DELETE", "/api/v1/namespaces/short-lived")
    cluster.wait_for(lambda: [each["metadata"]["name"] for each in corner.items("pods")] == ["held"], "the clean-up")
    code, answer = cluster.request("POST", corner.path("pods"), pod("late"))

    assert code == 403
    assert answer["message"] == (
        'pods "late" is forbidden: unable to create new content in namespace short-lived because it is being terminated'
    )
    assert answer["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace short-lived is being terminated",
            "field": "metadata.namespace",
        }
    ]
    corner.patch("pods", "held", [{"op": "remove", "path": "/metadata/finalizers"}])
    cluster.wait_for(lambda: cluster.request("GET", "/api/v1/namespaces/short-lived")[0] == 404, "the end")


def _with(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Sets a value at a dotted path; numbers are list places."""
    held: Any = body
    *parents, last = path.split(".")
    for part in parents:
        held = held[int(part)] if part.isdigit() else held.setdefault(part, {})
    held[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "code", "words"),
    [
        ("metadata.name", "Upper_Case", 422, "RFC 1123"),
        ("metadata.name", "", 422, "name or generateName is required"),
        ("metadata.labels", {"a": "x" * 64}, 422, "must be no more than 63"),
        ("metadata.labels", {"a b": "x"}, 422, "name part must consist"),
        ("metadata.labels", {"a": 5}, 400, "cannot unmarshal number"),
        ("metadata.namespace", "default", 400, "does not match the namespace"),
        ("kind", "Job", 400, "unrecognized"),
        ("spec", [], 400, "cannot unmarshal array"),
        ("spec.containers", [], 422, "spec.containers: Required value"),
        ("spec.containers", "none", 400, "cannot unmarshal string"),
        ("spec.containers.0.image", "", 422, "image: Required value"),
        ("spec.containers.0.resources", {"limits": {"cpu": "many"}}, 400, "must match the regular expression"),
        ("spec.containers.0.resources", {"limits": {"nvidia.com/gpu": "0.5"}}, 422, "must be an integer"),
        ("spec.containers.0.resources", {"requests": {"nvidia.com/gpu": "1"}}, 422, "Limit must be set"),
        (
            "spec.containers.0.resources",
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
            422,
            "must be equal to nvidia.com/gpu limit of 2",
        ),
        ("spec.containers.0.volumeMounts", [{"name": "x", "mountPath": "/x"}], 422, "Not found"),
        ("spec.restartPolicy", "Sometimes", 422, "supported values"),
        ("spec.nodeName", "node-0", 422, "cannot be set until all schedulingGates have been cleared"),
        ("spec.priorityClassName", "nobody", 403, "no PriorityClass with name nobody was found"),
        ("spec.tolerations", [{"key": "a", "operator": "Maybe"}], 422, "supported values"),
    ],
)
def test_a_bad_pod_is_refused_with_its_field(corner: Corner, path: str, value: Any, code: int, words: str) -> None:
    body = _with(pod("one", **GATE), path, value)

    found, answer = corner.cluster.request("POST", corner.path("pods"), body)

    assert (found, answer["kind"]) == (code, "Status"), answer
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("spec.completions", None, "when completion mode is Indexed"),
        ("spec.parallelism", -1, "greater than or equal to 0"),
        ("spec.template.spec.restartPolicy", "Always", "Required value"),
        ("metadata.name", "x" * 63, "invalid DNS label"),
        ("spec.podFailurePolicy", {"rules": [{"action": "Dance", "onPodConditions": [{"type": "Ready"}]}]}, "Dance"),
    ],
)
def test_a_bad_job_is_refused_with_its_field(corner: Corner, path: str, value: Any, words: str) -> None:
    code, answer = corner.cluster.request("POST", corner.path("jobs"), _with(job("gang", 2), path, value))

    assert code == 422, answer
    assert words in answer["message"]


def test_a_pod_failure_policy_demands_that_pods_never_restart(corner: Corner) -> None:
    rules = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    body = job("gang", 1, {"podFailurePolicy": rules}, restartPolicy="OnFailure")

    code, answer = corner.cluster.request("POST", corner.path("jobs"), body)

    assert code == 422
    assert 'only "Never" is supported' in answer["message"]


def test_garbage_instead_of_json_is_a_400(corner: Corner) -> None:
    connection = corner.cluster.connect()
    headers = {"Authorization": f"Bearer {corner.cluster.token}", "Content-Type": "application/json"}
    connection.request("POST", corner.path("pods"), "{no json", headers)

    assert connection.getresponse().status == 400
    connection.close()


def test_a_gated_pod_may_only_lose_gates(corner: Corner) -> None:
    made = corner.create("pods", pod("one", **GATE))
    more = [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "example.com/second"}}]

    code, answer = corner.patch("pods", "one", more)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.schedulingGates[1].name")
    assert corner.patch("pods", "one", release(made, "node-0"))[0] == 200
    again = [{"op": "add", "path": "/spec/schedulingGates", "value": GATE["schedulingGates"]}]
    assert corner.patch("pods", "one", again)[0] == 422


def test_placement_of_a_gated_pod_can_be_narrowed_but_not_widened(corner: Corner) -> None:
    corner.create("pods", pod("one", nodeSelector={"disk": "fast"}, affinity=pin("node-0"), **GATE))
    widen = [{"op": "remove", "path": "/spec/nodeSelector/disk"}]
    swap = [{"op": "replace", "path": "/spec/affinity", "value": pin("node-1")}]
    narrow = [{"op": "add", "path": "/spec/nodeSelector/zone", "value": "a"}]

    assert corner.patch("pods", "one", widen)[0] == 422
    assert corner.patch("pods", "one", swap)[0] == 422
    assert corner.patch("pods", "one", narrow)[0] == 200


def test_placement_is_fixed_once_the_gates_are_gone(corner: Corner) -> None:
    corner.create("pods", pod("one", gpus=9))
    code, answer = corner.patch("pods", "one", [{"op": "add", "path": "/spec/affinity", "value": pin("node-0")}])

    assert code == 422
    assert "pod updates may not change fields other than" in answer["message"]


def test_a_job_template_changes_only_while_suspended(corner: Corner) -> None:
    corner.create("jobs", job("gang", 2, {"suspend": True}))
    place = [{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"zone": "a"}}]
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other"}]
    size = [{"op": "replace", "path": "/spec/completions", "value": 3}]

    assert corner.patch("jobs", "gang", place)[0] == 200
    assert corner.patch("jobs", "gang", image)[0] == 422
    assert corner.patch("jobs", "gang", size)[0] == 422
    corner.patch("jobs", "gang", [{"op": "replace", "path": "/spec/suspend", "value": False}])
    corner.cluster.wait_for(lambda: "startTime" in corner.get("jobs", "gang")["status"], "the start")
    elsewhere = [{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"zone": "b"}}]
    assert corner.patch("jobs", "gang", elsewhere)[0] == 422


def test_a_quota_refuses_in_the_real_servers_words(corner: Corner) -> None:
    hard = {"requests.nvidia.com/gpu": "3", "pods": "10"}
    corner.create("resourcequotas", {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    corner.create("pods", pod("two", gpus=2, **GATE))

    code, answer = corner.cluster.request("POST", corner.path("pods"), pod("more", gpus=2))

    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods "more" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=3"
    )
    used = corner.get("resourcequotas", "gpus")["status"]["used"]
    assert used == {"requests.nvidia.com/gpu": "2", "pods": "1"}


def test_reserved_priority_names_are_refused(cluster: SimulatedCluster) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    code, answer = cluster.request("POST", path, {"metadata": {"name": "system-mine"}, "value": 5})

    assert code == 422
    assert "prefix are reserved" in answer["message"]
    assert cluster.request("POST", path, {"metadata": {"name": "mine"}, "value": 5})[0] == 201


def test_a_deleted_collection_is_gone(corner: Corner) -> None:
    for name in ("a", "b", "c"):
        corner.create("pods", pod(name, **GATE))

    code, _ = corner.cluster.request("DELETE", corner.path("pods") + "?labelSelector=app%20in%20(a,b)")

    assert code == 200
    assert [each["metadata"]["name"] for each in corner.items("pods")] == ["c"]
