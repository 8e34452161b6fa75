"""The checks on a real API server, with the portal's own rights: what they find, and that what is pasted helps."""

import secrets
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from clusters.k8s.gateway import Gateway
from clusters.manifests.adapters import born_pinned
from clusters.manifests.rights import IN_TEAMS, TEAM_ROLE
from clusters.models import Cluster, ClusterFinding, Dispatch
from clusters.probe import access, paste
from clusters.probe.round import Round
from portal.core import clock
from tests.contract.objects import wait_for
from tests.factories import make_cluster, make_team
from tests.kube.plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(120)]


@pytest.fixture
def namespace(kube_plane: ControlPlane) -> Iterator[str]:
    """A team, and its namespace on the server."""
    name = f"probe-{secrets.token_hex(3)}"
    make_team(name)
    kube_plane.open_namespace(name)
    yield name
    kube_plane.admin.delete("Namespace", "", name)


@pytest.fixture
def cluster(kube_plane: ControlPlane, namespace: str) -> Cluster:
    return make_cluster("real", server=kube_plane.server, ca_data=kube_plane.ca, token=kube_plane.token)


@pytest.fixture
def applied(kube_plane: ControlPlane) -> Iterator[list[dict[str, Any]]]:
    """What a test has pasted; it is taken away afterwards."""
    bodies: list[dict[str, Any]] = []
    yield bodies
    for body in bodies:
        metadata = body["metadata"]
        kube_plane.admin.delete(body["kind"], metadata.get("namespace", ""), metadata["name"])


def probe(cluster: Cluster) -> dict[str, ClusterFinding]:
    """Make all checks and return what was found."""
    with Gateway(cluster) as gateway:
        Round(cluster, gateway, _wait).whole()
    return {row.code: row for row in cluster.findings.all()}


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def apply(plane: ControlPlane, finding: ClusterFinding, applied: list[dict[str, Any]]) -> None:
    """Do what the page tells the administrator to do."""
    for body in yaml.safe_load_all(paste.yaml_for(finding)):
        plane.admin.create(body)
        applied.append(body)


def test_a_server_with_the_portals_rights_passes(cluster: Cluster, namespace: str) -> None:
    findings = probe(cluster)

    problems = {code: row.numbers for code, row in findings.items() if row.severity == "problem"}
    assert problems == {}
    for code in ("version", "clock", "rights", "canary"):
        assert findings[code].severity == "ok", findings[code].numbers
    assert findings["rights"].numbers["user"] == "system:serviceaccount:muster-system:muster"
    assert findings["canary"].numbers["namespace"] == namespace
    assert findings["token"].numbers["is"] == "short"
    assert findings["token"].numbers["renews"] is False


def test_the_canary_leaves_nothing_behind(kube_plane: ControlPlane, cluster: Cluster, namespace: str) -> None:
    probe(cluster)

    assert kube_plane.admin.items("Job", namespace) == []
    assert kube_plane.admin.items("Pod", namespace) == []


def test_what_a_namespace_lacks_is_found_and_pasted(
    kube_plane: ControlPlane, cluster: Cluster, namespace: str, applied: list[dict[str, Any]]
) -> None:
    kube_plane.admin.delete("RoleBinding", namespace, TEAM_ROLE)
    wait_for(lambda: probe(cluster)["rights"].severity == "problem", "the right is gone", timeout_s=15)
    before = probe(cluster)
    lacked = {(each.group, each.resource, each.verb) for right in IN_TEAMS for each in right.acts()}
    assert {tuple(row) for row in before["rights"].numbers["missing"]} == {(namespace, *act) for act in lacked}
    assert (before["canary"].numbers["is"], before["canary"].numbers["is_right"]) == ("refused", True)

    apply(kube_plane, before["rights"], applied)

    wait_for(lambda: probe(cluster)["rights"].severity == "ok", "the right is there", timeout_s=15)
    assert probe(cluster)["canary"].severity == "ok"


def test_the_policy_is_found_missing_pasted_recognised_and_known_for_altered(
    kube_plane: ControlPlane, cluster: Cluster, applied: list[dict[str, Any]]
) -> None:
    found = probe(cluster)["policy"]
    assert found.numbers["is"] == "forbidden"

    apply(kube_plane, found, applied)

    wait_for(lambda: probe(cluster)["policy"].numbers["is"] == "in_place", "the policy is known", timeout_s=15)
    assert Cluster.objects.get().dispatch == Dispatch.BORN_PINNED
    path = f"/apis/{born_pinned.API_VERSION}/mutatingadmissionpolicies/{born_pinned.NAME}"
    ignore = {"spec": {"failurePolicy": "Ignore"}}
    assert kube_plane.admin.request("PATCH", path, ignore, kind="application/merge-patch+json")[0] == 200
    assert probe(cluster)["policy"].numbers == {"is": "altered", "kinds": ["MutatingAdmissionPolicy"]}
    assert Cluster.objects.get().dispatch == Dispatch.GATES
    for body in born_pinned.objects("muster.internal"):
        kube_plane.admin.delete(body["kind"], "", born_pinned.NAME)
    assert probe(cluster)["policy"].numbers == {"is": "missing"}


def test_a_quota_and_a_strict_namespace_meet_the_canary(
    kube_plane: ControlPlane, cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, strict = f"/api/v1/namespaces/{namespace}", {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"metadata": {"labels": strict}}
    assert kube_plane.admin.request("PATCH", path, body, kind="application/merge-patch+json")[0] == 200
    assert probe(cluster)["canary"].severity == "ok"
    monkeypatch.setattr("clusters.probe.canary.GATHER_S", 5.0)
    metadata = {"name": "full", "namespace": namespace}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "0"}}}
    kube_plane.admin.create(quota)
    time.sleep(1)

    found = probe(cluster)["canary"]

    assert (found.severity, found.numbers["step"]) == ("warning", "pod")
    assert "exceeded quota: full" in found.numbers["text"]


def test_the_account_renews_its_token_once_it_may(
    kube_plane: ControlPlane, cluster: Cluster, applied: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = probe(cluster)["token"]
    apply(kube_plane, found, applied)
    wait_for(lambda: probe(cluster)["token"].numbers["renews"], "the right is there", timeout_s=15)
    later = clock.now() + timedelta(hours=20)
    monkeypatch.setattr(clock, "now", lambda: later)

    with Gateway(cluster) as gateway:
        Round(cluster, gateway, _wait).renew_token()

    kept = Cluster.objects.get()
    assert kept.token != cluster.token
    life = access.life_of(kept.token)
    assert life is not None
    assert life.seconds == 24 * 3600
    with Gateway(kept) as gateway:
        assert gateway.user_name() == "system:serviceaccount:muster-system:muster"
