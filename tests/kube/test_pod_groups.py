"""Level L1 on a real API server and its scheduler: a gang is bound whole or not at all."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.manifests import gang, hashing, names, patches, rights
from clusters.manifests.adapters import born_pinned, pod_group
from clusters.manifests.values import ContainerValues, GangValues, PodValues
from clusters.models import Cluster
from clusters.probe import paste
from jobs.dispatch.start import NO_NODE
from tests.contract.objects import wait_for
from tests.e2e.portal import RunningPortal
from tests.factories import make_cluster, make_team
from tests.kube.admin import Json
from tests.kube.fleet import TEAMS
from tests.kube.plane import ControlPlane
from tests.kube.test_born_pinned import gpu_nodes, identity_of, probe_until_active
from tests.kube.test_dispatch import H100, INDEX, LONG, alive, objects
from tests.kube.test_probe import apply, probe

pytestmark = [pytest.mark.kube, pytest.mark.kubernetes("1.37"), pytest.mark.slow, pytest.mark.timeout(240)]

TEAM = "team-vision"
GONE = "a-node-that-is-not-there"
CODE = "native_gangs"
_numbers = itertools.count(1)


@pytest.fixture
def with_policy(kube_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane on which pods are pinned as they are born."""
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.create(body)
    probe_until_active(kube_plane)
    kube_plane.admin.delete_all("Job", TEAM)  # those of the probe carry the labels of runs
    yield kube_plane
    for body in born_pinned.objects(names.DOMAIN):
        kube_plane.admin.delete(body["kind"], "", born_pinned.NAME)


def gang_of(plan: list[str], *, is_born_pinned: bool, is_grouped: bool) -> list[Json]:
    """What the driver makes of a gang of one GPU a rank."""
    name = f"m-grouped{next(_numbers)}-a1"
    container = ContainerValues(image="example.org/train:1", env={"SIM_RUN_S": "600"})
    values = GangValues(
        identity=identity_of(name),
        pod=PodValues(container=container, accelerator_resource="nvidia.com/gpu", gpus=1, grace_s=1),
        workers=len(plan),
        is_gang=True,
        restart_policy="Never",
        backoff_limit=0,
        ttl_s=None,
        plan=tuple(plan),
        is_born_pinned=is_born_pinned,
        is_grouped=is_grouped,
    )
    return gang.objects(values)


def start(plane: ControlPlane, bodies: list[Json]) -> Json:
    """Make them as the driver does: the Job, what it owns, and then its pods."""
    job, *owned = bodies
    made = plane.admin.create(job)
    for body in owned:
        plane.admin.create(hashing.owned_by(body, made))
    path = f"/apis/batch/v1/namespaces/{TEAM}/jobs/{made['metadata']['name']}"
    opened = patches.unsuspend(made["metadata"]["uid"])
    status, answer = plane.admin.request("PATCH", path, opened, kind="application/json-patch+json")
    assert status == 200, answer
    return made


def pods_of(plane: ControlPlane, job: Json) -> list[Json]:
    """Its pods by rank."""
    found = plane.admin.items("Pod", TEAM, labels=f"{names.JOB_NAME_LABEL}={job['metadata']['name']}")
    return sorted(found, key=lambda pod: int(pod["metadata"]["labels"][INDEX]))


def release(plane: ControlPlane, pods: list[Json], plan: list[str]) -> None:
    """What the driver does at S5."""
    for pod, node in zip(pods, plan, strict=True):
        path = f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}"
        ops = patches.release(pod, node, names.DOMAIN)
        status, answer = plane.admin.request("PATCH", path, ops, kind="application/json-patch+json")
        assert status == 200, answer


def told(pod: Json) -> str:
    """Why it is not bound, in the scheduler's words."""
    conditions = pod["status"].get("conditions") or ()
    return next((each.get("message") or "" for each in conditions if each["type"] == "PodScheduled"), "")


def bound(pods: list[Json]) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]


def condition_of(plane: ControlPlane, name: str) -> tuple[str, str]:
    """Status and reason of what the scheduler says of the group."""
    (group,) = [each for each in plane.admin.items("PodGroup", TEAM) if each["metadata"]["name"] == name]
    conditions = (group.get("status") or {}).get("conditions") or ()
    return next(
        ((each["status"], each["reason"]) for each in conditions if each["type"] == "PodGroupInitiallyScheduled"),
        ("", ""),
    )


@pytest.mark.parametrize("is_grouped", [True, False], ids=["a group", "no group"])
def test_a_gang_of_which_one_rank_has_no_node_is_not_bound_at_all(with_policy: ControlPlane, is_grouped: bool) -> None:
    plan = [*gpu_nodes(with_policy)[:2], GONE, gpu_nodes(with_policy)[3]]
    job = start(with_policy, gang_of(plan, is_born_pinned=True, is_grouped=is_grouped))
    name = job["metadata"]["name"]

    def is_judged() -> bool:
        pods = pods_of(with_policy, job)
        return len(pods) == 4 and all(pod["spec"].get("nodeName") or told(pod) for pod in pods)

    wait_for(is_judged, "the scheduler has looked at all pods", timeout_s=30)
    pods = pods_of(with_policy, job)
    assert bound(pods) == ([] if is_grouped else [node for node in plan if node != GONE])
    # Only the rank at fault speaks of nodes first: by that the driver tells it from the others, which wait for it.
    blamed = [plan[rank] for rank, pod in enumerate(pods) if NO_NODE.match(told(pod))]
    assert blamed == [GONE], [told(pod) for pod in pods]
    if is_grouped:
        assert condition_of(with_policy, name) == ("False", "Unschedulable")


def test_gated_members_hold_their_group_until_the_last_of_them_is_released(kube_plane: ControlPlane) -> None:
    plan = gpu_nodes(kube_plane)[:3][::-1]
    job = start(kube_plane, gang_of(plan, is_born_pinned=False, is_grouped=True))
    pods = wait_for(lambda: _exactly(pods_of(kube_plane, job), 3), "all pods stand at their gates", timeout_s=30)

    release(kube_plane, pods[:2], plan[:2])
    with pytest.raises(AssertionError):
        wait_for(lambda: bound(pods_of(kube_plane, job)), "a pod is bound alone", timeout_s=3)
    release(kube_plane, pods[2:], plan[2:])

    wait_for(lambda: bound(pods_of(kube_plane, job)) == plan, "all are bound where they belong", timeout_s=30)
    name = job["metadata"]["name"]
    wait_for(lambda: condition_of(kube_plane, name)[0] == "True", "the group is scheduled", timeout_s=15)


def _exactly(found: list[Json], count: int) -> list[Json] | None:
    return found if len(found) == count else None


def test_a_group_goes_with_its_job_once_its_pods_are_gone(kube_plane: ControlPlane) -> None:
    plan = gpu_nodes(kube_plane)[:2]
    job = start(kube_plane, gang_of(plan, is_born_pinned=False, is_grouped=True))
    assert kube_plane.admin.items("PodGroup", TEAM) != []

    kube_plane.admin.delete_all("Job", TEAM)

    wait_for(lambda: not pods_of(kube_plane, job), "the pods are gone", timeout_s=30)
    wait_for(lambda: kube_plane.admin.items("PodGroup", TEAM) == [], "the group is gone", timeout_s=30)


@pytest.fixture
def cluster(kube_plane: ControlPlane) -> Cluster:
    """A row for the checks, and a team with a namespace."""
    make_team(TEAM)
    return make_cluster("real", server=kube_plane.server, ca_data=kube_plane.ca, token=kube_plane.token)


@pytest.mark.django_db
def test_the_right_that_is_missing_is_pasted_and_then_gangs_are_bound_whole(
    kube_plane: ControlPlane, cluster: Cluster
) -> None:
    before = probe(cluster)[CODE]
    assert (before.severity, before.numbers["is"]) == ("warning", "forbidden")
    assert {row[0] for row in before.numbers["missing"]} == {TEAM}
    assert not Cluster.objects.get().has_pod_groups

    applied: list[Json] = []
    try:
        apply(kube_plane, before, applied)
        wait_for(lambda: probe(cluster)[CODE].numbers["is"] == "ready", "the right is there", timeout_s=20)
    finally:
        for body in applied:
            kube_plane.admin.delete(body["kind"], TEAM, body["metadata"]["name"])

    assert Cluster.objects.get().has_pod_groups
    assert paste.yaml_for(probe(cluster)["policy"]) != ""
    leftover = [body for body in kube_plane.admin.items("Job", TEAM) if "group" in body["metadata"]["name"]]
    assert leftover == []  # it was only rehearsed


@pytest.mark.django_db
def test_without_the_gate_the_server_is_found_to_have_no_groups(kube_plane: ControlPlane, cluster: Cluster) -> None:
    with _without_the_gate(kube_plane):
        found = probe(cluster)[CODE]

    assert (found.severity, found.numbers["is"]) in {("ok", "not_offered"), ("ok", "dropped")}
    assert not Cluster.objects.get().has_pod_groups


@contextmanager
def _without_the_gate(plane: ControlPlane) -> Iterator[None]:
    parts = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

    def restart() -> None:
        for part in reversed(parts):
            plane.stop_part(part)
        for part in parts:
            plane.start_part(part)

    plane.has_pod_groups = False
    restart()
    try:
        yield
    finally:
        plane.has_pod_groups = True
        restart()


@pytest.fixture
def grouping(portal: RunningPortal, kube_plane: ControlPlane) -> Iterator[RunningPortal]:
    """A portal whose cluster lets it make PodGroups, as its checks found."""
    granted = rights.for_groups(TEAMS)
    for body in granted:
        kube_plane.admin.create(body)
    _until_grouping(portal, kube_plane, wanted=True)
    yield portal
    for body in granted:
        kube_plane.admin.delete(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])
    _until_grouping(portal, kube_plane, wanted=False)


def _until_grouping(portal: RunningPortal, plane: ControlPlane, *, wanted: bool) -> None:
    """Ask for the checks until they say so."""
    admin = portal.api_of("admin")

    def says_so() -> bool:
        status, answer = admin.ask("POST", f"clusters/{plane.name}/probe/")
        assert status < 300, answer
        portal.wait_for(lambda: _is_checked(portal), "the checks were made", timeout_s=60)
        ((found,),) = portal.rows("SELECT has_pod_groups FROM clusters_cluster")
        return bool(found) == wanted

    portal.wait_for(says_so, f"groups are made: {wanted}", timeout_s=60)


def _is_checked(portal: RunningPortal) -> bool:
    ((done,),) = portal.rows("SELECT probed_at > probe_asked_at FROM clusters_cluster")
    return bool(done)


def test_a_gang_of_the_portal_is_a_group_that_is_bound_whole_where_it_was_placed(
    grouping: RunningPortal, kube_plane: ControlPlane
) -> None:
    job_id = grouping.api.submit({**H100, **LONG})

    job = grouping.until_state(job_id, "running")

    planned = {rank["rank"]: rank["node"] for rank in job["placement"]["nodes"]}
    pods = alive(kube_plane, job_id)
    assert {int(pod["metadata"]["labels"][INDEX]): pod["spec"]["nodeName"] for pod in pods} == planned
    assert all(pod_group.is_grouped(pod["spec"]) for pod in pods)
    (group,) = objects(kube_plane, "PodGroup", job_id)
    assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 4
    assert condition_of(kube_plane, group["metadata"]["name"])[0] == "True"
    assert job["attempt"] == 1

    grouping.api.act(job_id, "cancel")
    grouping.until_state(job_id, "cancelled")
    grouping.wait_for(lambda: objects(kube_plane, "PodGroup", job_id) == [], "the group is gone")


def test_a_run_of_one_worker_and_a_service_are_no_groups(grouping: RunningPortal, kube_plane: ControlPlane) -> None:
    spec = {"name": "one", "image": "example.org/t:1", "workers": 1, "gpus_per_worker": 1, "accelerators": ["h100"]}
    job_id = grouping.api.submit({**spec, **LONG})

    grouping.until_state(job_id, "running")

    assert objects(kube_plane, "PodGroup", job_id) == []


def test_a_right_that_was_taken_away_costs_an_attempt_and_no_group_is_made_from_then_on(
    grouping: RunningPortal, kube_plane: ControlPlane
) -> None:
    kube_plane.admin.delete("RoleBinding", TEAM, rights.GROUPS_ROLE)
    try:
        job_id = grouping.api.submit({**H100, "workers": 2, **LONG})
        job = grouping.until_state(job_id, "running")
    finally:
        (binding,) = [each for each in rights.for_groups([TEAM]) if each["kind"] == "RoleBinding"]
        kube_plane.admin.create(binding)

    assert job["attempt"] == 2
    rows = grouping.rows("SELECT is_grouped, stop_message FROM jobs_attempt ORDER BY id DESC LIMIT 2")
    (second, _running), (first, message) = rows
    assert (first, second) == (True, False)
    assert "does not take the gang as a PodGroup" in message
    assert not any(pod_group.is_grouped(pod["spec"]) for pod in alive(kube_plane, job_id))
    assert objects(kube_plane, "PodGroup", job_id) == []


@pytest.mark.usefixtures("with_policy")
def test_on_top_of_the_policy_pods_are_born_at_their_nodes_and_bound_whole(
    grouping: RunningPortal, kube_plane: ControlPlane
) -> None:
    grouping.rows("UPDATE clusters_cluster SET dispatch = 'born_pinned' RETURNING id")
    try:
        job_id = grouping.api.submit({**H100, **LONG})
        job = grouping.until_state(job_id, "running")
    finally:
        grouping.rows("UPDATE clusters_cluster SET dispatch = 'gates' RETURNING id")

    pods = alive(kube_plane, job_id)
    assert [pod["spec"]["nodeName"] for pod in pods] == [rank["node"] for rank in job["placement"]["nodes"]]
    assert all(pod_group.is_grouped(pod["spec"]) for pod in pods)
    assert not any(born_pinned.plan_key(names.DOMAIN) in pod["metadata"].get("annotations", {}) for pod in pods)
    assert job["attempt"] == 1
