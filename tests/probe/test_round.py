"""All checks of a simulated cluster over HTTP, as the watcher makes them."""

from datetime import timedelta

import pytest

from clusters.k8s.values import Unreachable
from clusters.manifests import canary
from clusters.models import Cluster, ClusterFinding, Dispatch, Severity
from clusters.simulated.fleet import uniform
from portal.core import clock
from portal.core.models import AuditEvent
from portal.identity.models import Team
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.factories import make_cluster, make_flavor, make_node, make_team
from tests.probe.conftest import found, jobs, round_of
from tests.probe.tokens import living

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(90)]

CODES = {
    *("version", "clock", "rights", "token", "policy", "native_gangs", "engines", "canary"),
    *("accelerators", "topology", "taint"),
}


def deny(simulated: SimulatedCluster, *denied: dict[str, str]) -> None:
    simulated.control("PUT", "/simulated/rights", {"denied": list(denied)})


def test_a_cluster_that_has_all_is_told_so(simulated: SimulatedCluster, cluster: Cluster, team: Team) -> None:
    flavor = make_flavor("h100", label_value="H100")
    labels = {"nvidia.com/gpu.product": "H100", "t/rack": "r1"}
    taints = [{"key": "muster.internal/dedicated", "value": "true", "effect": "NoSchedule"}]
    make_node(cluster, flavor=flavor, labels=labels, extended={"nvidia.com/gpu": 8}, taints=taints)
    cluster.levels.create(depth=0, name="rack", label_key="t/rack")

    round_of(cluster).whole()

    findings = found(cluster)
    assert findings.keys() == CODES
    severities = {code: severity for code, (severity, _numbers) in findings.items()}
    assert severities == {**dict.fromkeys(CODES, "ok"), "token": "unknown"}  # its token is no JWT
    assert findings["rights"][1] == {"user": "simulated", "missing": []}
    assert findings["policy"][1] == {"is": "not_offered"}
    numbers = findings["canary"][1]
    assert (numbers["is"], numbers["namespace"]) == ("ok", team.namespace)
    assert set(numbers["ms"]) == {"create", "open", "pod", "patch", "delete", "gone"}
    cluster.refresh_from_db()
    assert cluster.probed_at is not None
    assert cluster.dispatch == Dispatch.GATES


def test_the_canary_leaves_nothing_behind(simulated: SimulatedCluster, cluster: Cluster, team: Team) -> None:
    round_of(cluster).whole()

    assert simulated.request("GET", jobs(team.namespace))[1]["items"] == []
    assert simulated.request("GET", f"/api/v1/namespaces/{team.namespace}/pods")[1]["items"] == []


def test_what_an_earlier_canary_left_is_cleared_away_and_what_is_not_ours_is_not(
    simulated: SimulatedCluster, cluster: Cluster, team: Team
) -> None:
    left = canary.job(team.namespace, "default", "muster.internal")
    assert simulated.request("POST", jobs(team.namespace), left)[0] == 201
    round_of(cluster).whole()
    assert found(cluster)["canary"][0] == Severity.OK

    foreign = {**left, "metadata": {**left["metadata"], "labels": {}}}
    assert simulated.request("POST", jobs(team.namespace), foreign)[0] == 201
    round_of(cluster).whole()

    severity, numbers = found(cluster)["canary"]
    assert (severity, numbers["step"]) == (Severity.PROBLEM, "create")
    assert len(simulated.request("GET", jobs(team.namespace))[1]["items"]) == 1


@pytest.mark.parametrize(
    ("hard", "step"), [({"count/jobs.batch": "0"}, "create"), ({"pods": "0"}, "pod"), ({"requests.cpu": "0"}, "pod")]
)
def test_a_quota_that_refuses_the_canary_is_told_in_its_own_words(
    simulated: SimulatedCluster,
    cluster: Cluster,
    team: Team,
    monkeypatch: pytest.MonkeyPatch,
    hard: dict[str, str],
    step: str,
) -> None:
    monkeypatch.setattr("clusters.probe.canary.GATHER_S", 2.0)
    path = f"/api/v1/namespaces/{team.namespace}/resourcequotas"
    assert simulated.request("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": hard}})[0] == 201

    round_of(cluster).whole()

    severity, numbers = found(cluster)["canary"]
    assert (severity, numbers["is"], numbers["step"]) == (Severity.WARNING, "refused", step)
    assert "exceeded quota: q" in numbers["text"]
    simulated.wait_for(lambda: not simulated.request("GET", jobs(team.namespace))[1]["items"], "the Job is gone")


def test_missing_rights_are_found_one_by_one(
    simulated: SimulatedCluster, cluster: Cluster, team: Team, other_team: Team
) -> None:
    # Not granted everywhere, and in the namespace of one team alone.
    everywhere = {"verb": "patch", "group": "batch", "resource": "jobs", "namespace": ""}
    deny(simulated, everywhere, {**everywhere, "namespace": "speech"}, {"verb": "list", "resource": "nodes"})

    round_of(cluster).whole()

    severity, numbers = found(cluster)["rights"]
    assert severity == Severity.PROBLEM
    assert numbers["missing"] == [["", "", "nodes", "list"], ["speech", "batch", "jobs", "patch"]]
    assert found(cluster)["canary"][0] == Severity.OK  # in the other team's namespace


def test_a_canary_that_lacks_a_right_cleans_up_and_says_which(
    simulated: SimulatedCluster, cluster: Cluster, team: Team
) -> None:
    deny(simulated, {"verb": "patch", "resource": "pods"})

    round_of(cluster).whole()

    severity, numbers = found(cluster)["canary"]
    assert (severity, numbers["step"], numbers["is_right"]) == (Severity.PROBLEM, "patch", True)
    assert 'cannot patch resource "pods"' in numbers["text"]
    simulated.wait_for(lambda: not simulated.request("GET", jobs(team.namespace))[1]["items"], "the Job is gone")


def test_the_canary_flies_in_the_first_namespace_that_is_there(simulated: SimulatedCluster, cluster: Cluster) -> None:
    round_of(cluster).whole()
    assert found(cluster)["canary"][1] == {"is": "no_team"}

    make_team("far")
    round_of(cluster).whole()
    assert found(cluster)["canary"] == (Severity.WARNING, {"is": "no_namespace", "namespaces": ["far"]})

    make_team("speech")
    round_of(cluster).whole()
    assert found(cluster)["canary"][1]["namespace"] == "speech"


def test_a_clock_that_goes_wrong_is_warned_of(simulated: SimulatedCluster, cluster: Cluster) -> None:
    simulated.control("PUT", "/simulated/clock", {"ahead": -60})

    round_of(cluster).whole()

    severity, numbers = found(cluster)["clock"]
    assert severity == Severity.WARNING
    assert -62 <= numbers["seconds"] <= -58


def test_an_old_cluster_is_a_problem(cluster: Cluster) -> None:
    with running_cluster({**uniform(nodes=1, gpus=8), "version": "v1.29.9"}, clock=10) as old:
        row = make_cluster("old", server=old.url, token=old.token)
        round_of(row).whole()

    assert found(row)["version"] == (Severity.PROBLEM, {"version": "v1.29.9", "oldest": "1.30", "is_old": True})


def test_a_silent_cluster_keeps_its_findings_and_the_token_is_judged_without_it(
    simulated: SimulatedCluster, cluster: Cluster
) -> None:
    round_of(cluster).whole()
    before = found(cluster)
    probed_at = Cluster.objects.get().probed_at
    simulated.control("POST", "/simulated/outage", {"seconds": 60})
    cluster.token = living(clock.now() - timedelta(days=2), clock.now() - timedelta(days=1))

    with pytest.raises(Unreachable):
        round_of(cluster).whole()

    after = found(cluster)
    assert after.pop("token")[1]["is"] == "over"
    assert after == {code: finding for code, finding in before.items() if code != "token"}
    assert Cluster.objects.get().probed_at == probed_at


def test_a_round_that_finds_the_same_writes_no_row_again(
    simulated: SimulatedCluster, cluster: Cluster, other_team: Team
) -> None:
    round_of(cluster).whole()
    before = dict(cluster.findings.exclude(code="canary").values_list("code", "checked_at"))
    ClusterFinding.objects.create(cluster=cluster, code="of_old", severity="ok", checked_at=clock.now())

    round_of(cluster).whole()

    assert dict(cluster.findings.exclude(code="canary").values_list("code", "checked_at")) == before
    assert not AuditEvent.objects.exists()
