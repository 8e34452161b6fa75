"""Whether a cluster binds gangs whole: what a server answers, and what follows. On a real one: tests/kube."""

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler

import pytest
import yaml

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.models import Cluster, ClusterFinding, Severity
from clusters.probe import paste, sentences
from clusters.probe.groups import Groups
from clusters.services.findings import Finding, write_findings
from portal.core.models import AuditEvent
from tests.clusters.scripted_server import ScriptedServer, reply, scripted_server
from tests.factories import make_cluster

KNOWN = ["batch/v1", "scheduling.k8s.io/v1beta1"]
DROPPED = {"schedulingGates": [{"name": "muster.internal/placement"}]}
KEPT = {**DROPPED, "schedulingGroup": {"podGroupName": "m"}}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as script:
        yield script


def answering(
    spec: Mapping[str, object], *, kinds: tuple[str, ...] = ("podgroups",), may: bool = True, is_there: bool = True
) -> dict[str, tuple[int, object]]:
    """What the server answers, by the end of the path without its query."""
    body = {"spec": {"template": {"spec": spec}}}
    missing = {"kind": "Status", "code": 404, "message": "not found", "reason": "NotFound"}
    return {
        "/v1beta1": (200, {"resources": [{"name": name} for name in kinds]}),
        "/jobs": (201, body) if is_there else (404, missing),
        "/selfsubjectaccessreviews": (201, {"status": {"allowed": may}}),
        "/selfsubjectreviews": (201, {"status": {"userInfo": {"username": "system:serviceaccount:s:muster"}}}),
    }


def look(server: ScriptedServer, answers: dict[str, tuple[int, object]], known: list[str] | None = None) -> Finding:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        status, body = next(found for end, found in answers.items() if path.endswith(end))
        reply(handler, status, json.dumps(body).encode())

    server.answer = answer
    with Gateway(Connection(server=server.url, token="t")) as gateway:
        return Groups(gateway, "muster.internal", "i1").look(KNOWN if known is None else known, ["team-a", "team-b"])


@pytest.mark.parametrize(
    ("answers", "known", "severity", "kind"),
    [
        (answering(KEPT), KNOWN, "ok", "ready"),
        (answering(DROPPED), KNOWN, "ok", "dropped"),
        (answering(KEPT), ["batch/v1"], "ok", "not_offered"),
        (answering(KEPT, kinds=("workloads",)), KNOWN, "ok", "not_offered"),
        (answering(KEPT, may=False), KNOWN, "warning", "forbidden"),
        (answering(KEPT, is_there=False), KNOWN, "unknown", "no_namespace"),
    ],
    ids=["kept", "dropped", "no API", "no such kind", "no right", "no namespace"],
)
def test_it_is_told_by_what_the_server_would_store(
    server: ScriptedServer, answers: dict[str, tuple[int, object]], known: list[str], severity: str, kind: str
) -> None:
    found = look(server, answers, known)

    assert (found.severity, found.numbers["is"]) == (severity, kind)
    tried = [asked for asked in server.asked if "/jobs" in asked]
    assert all(asked.startswith("POST ") and asked.endswith("?dryRun=All") for asked in tried)


def test_an_account_that_may_not_gets_exactly_what_it_lacks(server: ScriptedServer) -> None:
    found = look(server, answering(KEPT, may=False))

    row = ClusterFinding(code=found.code, severity=found.severity, numbers=dict(found.numbers))
    bodies = list(yaml.safe_load_all(paste.yaml_for(row)))
    assert {body["metadata"]["namespace"] for body in bodies} == {"team-a", "team-b"}
    rules = [rule for body in bodies for rule in body.get("rules") or ()]
    one = {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["create", "get"]}
    assert rules == [one, one]
    assert "may not make PodGroups" in sentences.tell(row).sentence


@pytest.mark.django_db
def test_gangs_are_bound_whole_where_that_is_ready_and_only_there() -> None:
    cluster = make_cluster("north")

    def write(kind: str, severity: Severity = Severity.OK) -> bool:
        write_findings(
            cluster=cluster, findings=[Finding("native_gangs", severity, {"is": kind})], is_whole_round=False
        )
        return Cluster.objects.get().has_pod_groups

    assert write("ready")
    assert write("no_namespace", Severity.UNKNOWN)  # what was true is the best that is known
    assert not write("dropped")
    assert write("ready")
    assert [write(kind) for kind in ("forbidden", "refused", "not_offered", "of_tomorrow")] == [False] * 4
    events = AuditEvent.objects.order_by("pk").values_list("action", "after")
    assert [(action, after["why"]) for action, after in events] == [
        ("cluster.grouping_changed", why) for why in ("ready", "dropped", "ready", "forbidden")
    ]
