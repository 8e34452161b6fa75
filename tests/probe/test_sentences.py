"""What a person reads of each finding, and what they can paste."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from django.utils import translation

from clusters.manifests.adapters import born_pinned
from clusters.models import ClusterFinding, Severity
from clusters.probe import access, paste, sentences, server, supply
from clusters.services.findings import Finding
from tests.probe.test_checks import DAY, H100, NOON, machine
from tests.probe.tokens import living

USER = "system:serviceaccount:ops:muster"
MISSING = [["", "", "nodes", "list"], ["team-a", "batch", "jobs", "create"], ["team-a", "batch", "jobs", "patch"]]


def row(finding: Finding) -> ClusterFinding:
    return ClusterFinding(code=finding.code, severity=finding.severity, numbers=dict(finding.numbers))


def told(code: str, **numbers: Any) -> str:
    """All words of a finding in one text."""
    words = sentences.tell(ClusterFinding(code=code, severity=Severity.WARNING, numbers=numbers))
    return "\n".join([words.sentence, *words.details, words.advice])


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (
            server.version({"gitVersion": "v1.29.1"}),
            "Kubernetes v1.29.1 is too old, so nothing is placed here: 1.30 is the oldest",
        ),
        (server.version({"gitVersion": "v1.36.3"}), "Kubernetes v1.36.3; 1.30 is the oldest that works."),
        (server.version({}), "does not say its version"),
        (server.clock_skew("Tue, 01 Dec 2026 12:01:00 GMT", NOON, NOON), "60 s ahead of ours; 5 s do no harm"),
        (server.clock_skew("Tue, 01 Dec 2026 11:59:00 GMT", NOON, NOON), "59 s behind ours"),
        (server.clock_skew("Tue, 01 Dec 2026 12:00:00 GMT", NOON, NOON), "agree to 5 s"),
        (server.clock_skew("", NOON, NOON), "does not tell its time"),
        (server.engines(["kueue.x-k8s.io/v1beta2"]), "Installed: Kueue."),
        (server.engines([]), "None is installed."),
        (Finding("native_gangs", Severity.OK, {"is": "ready"}), "binds a gang whole or not at all"),
        (Finding("native_gangs", Severity.OK, {"is": "dropped"}), "knows PodGroups and does not heed them"),
        (Finding("native_gangs", Severity.OK, {"is": "not_offered"}), "no PodGroups of its own"),
        (Finding("native_gangs", Severity.UNKNOWN, {"is": "no_namespace"}), "there is none yet"),
        (Finding("native_gangs", Severity.WARNING, {"is": "refused", "text": "no"}), "refused a PodGroup"),
        (access.token("opaque", NOON), "does not say when it ends"),
        (access.token("a.e30.c", NOON), "never ends"),
        (access.token(living(NOON, NOON - DAY), NOON), "The token ended on"),
        (access.token(living(NOON, NOON + DAY), NOON), "the account may not renew it"),
        (access.token(living(NOON, NOON + DAY), NOON, renews=True), "and is renewed before"),
        (access.token(living(NOON, NOON + 90 * DAY), NOON), "The token ends on"),
        (supply.accelerators([], [H100]), "No node offers a GPU."),
        (supply.accelerators([machine()], [H100]), "The GPUs of 1 node have a flavor."),
        (supply.accelerators([machine(), machine("B200")], [H100]), "1 of 2 GPU nodes (50 %)"),
        (supply.topology([], []), "No GPU node is known yet."),
        (supply.topology([machine()], []), "No level is defined"),
        (supply.topology([machine()], [("rack", "t/rack")]), "All 1 GPU nodes carry the label of every level."),
        (supply.topology([machine(), machine(rack="")], [("rack", "t/rack")]), "down to 50 % of 2 nodes"),
        (supply.taint([machine(), machine(tainted=False)], "muster.internal"), "1 of 2 GPU nodes carry the taint"),
        (supply.taint([machine()], "muster.internal"), "All 1 GPU nodes keep other pods away"),
    ],
)
def test_a_finding_is_a_sentence_with_its_numbers(finding: Finding, words: str) -> None:
    assert words in sentences.tell(row(finding)).sentence


@pytest.mark.parametrize(
    ("code", "numbers", "words"),
    [
        ("rights", {"user": USER, "missing": []}, ["has every right", f"account: {USER}"]),
        (
            "rights",
            {"user": USER, "missing": MISSING},
            ["lacks 3 rights", "all namespaces: list nodes", "team-a: create, patch jobs.batch", "apply this"],
        ),
        ("policy", {"is": "in_place"}, ["born on its node"]),
        ("policy", {"is": "not_offered"}, ["from 1.36 on"]),
        ("policy", {"is": "missing"}, ["is missing", "apply this"]),
        (
            "policy",
            {"is": "altered", "kinds": ["MutatingAdmissionPolicy"]},
            ["not relied on", "MutatingAdmissionPolicy"],
        ),
        ("policy", {"is": "forbidden", "user": USER}, ["may not look", "apply this"]),
        ("canary", {"is": "no_team"}, ["no team yet"]),
        ("canary", {"is": "no_namespace", "namespaces": ["team-a"]}, ["the namespace of no team", "team-a"]),
        ("canary", {"is": "stays", "namespace": "team-a", "name": "c"}, ["does not go away", "team-a/c"]),
        (
            "canary",
            {"is": "refused", "namespace": "team-a", "step": "create", "text": "webhook says no", "is_right": False},
            ["refuses the trial Job", "webhook says no", "in the namespace team-a", "its own words"],
        ),
        (
            "canary",
            {"is": "refused", "namespace": "team-a", "step": "pod", "text": "", "is_right": False},
            ["got no pod", "controller manager"],
        ),
        (
            "canary",
            {"is": "refused", "namespace": "team-a", "step": "open", "text": "cannot patch", "is_right": True},
            ["stopped at a right that is missing", "cannot patch"],
        ),
        (
            "canary",
            {
                "is": "ok",
                "namespace": "team-a",
                "ms": {"create": 1, "open": 2, "pod": 3, "patch": 4, "delete": 5, "gone": 6},
            },
            ["its pod came after 3 ms", "create 1 ms, open 2 ms, patch 4 ms, delete 5 ms, gone 6 ms"],
        ),
        ("accelerators", {}, ["No node is known yet."]),
        ("rights", {"error": "the API is closed"}, ["did not answer this", "the API is closed"]),
        ("of_tomorrow", {}, ["of_tomorrow"]),
    ],
)
def test_a_finding_says_what_to_do(code: str, numbers: dict[str, Any], words: list[str]) -> None:
    text = told(code, **numbers)

    assert [word for word in words if word not in text] == []


def test_what_everybody_may_read_names_no_namespace_and_no_account() -> None:
    for numbers in (
        {"user": USER, "missing": MISSING},
        {"is": "refused", "namespace": "team-a", "step": "create", "text": "team-a is closed", "is_right": False},
        {"is": "stays", "namespace": "team-a", "name": "c"},
    ):
        code = "rights" if "missing" in numbers else "canary"
        sentence = sentences.tell(ClusterFinding(code=code, numbers=numbers)).sentence
        assert "team-a" not in sentence
        assert USER not in sentence


def test_the_day_of_a_token_is_told_in_the_readers_language() -> None:
    text = living(NOON, datetime(2026, 12, 3, 9, 30, tzinfo=UTC))
    finding = row(access.token(text, NOON))
    with translation.override("en"):
        assert "Dec. 3, 2026" in sentences.tell(finding).sentence


def documents(finding: ClusterFinding) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(paste.yaml_for(finding)))


def test_missing_rights_are_pasted_exactly() -> None:
    finding = ClusterFinding(code="rights", numbers={"user": USER, "missing": MISSING})
    role, _binding, team_role, team_binding = documents(finding)

    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    assert team_role["rules"] == [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "patch"]}]
    assert team_role["metadata"]["namespace"] == "team-a"
    assert team_binding["subjects"] == [{"kind": "ServiceAccount", "name": "muster", "namespace": "ops"}]


def test_the_policy_is_pasted_as_it_must_stand_there() -> None:
    missing = documents(ClusterFinding(code="policy", numbers={"is": "missing"}))
    forbidden = documents(ClusterFinding(code="policy", numbers={"is": "forbidden", "user": USER}))

    assert missing == born_pinned.objects("muster.internal")
    assert forbidden[2:] == missing
    assert [rule["resourceNames"] for rule in forbidden[0]["rules"]] == [["muster-pin"]]
    assert paste.yaml_for(ClusterFinding(code="policy", numbers={"is": "in_place"})) == ""


def test_the_right_to_renew_is_pasted_for_the_own_account_alone() -> None:
    finding = row(access.token(living(NOON, NOON + timedelta(hours=1)), NOON, renews=False, user=USER))
    role, binding = documents(finding)

    assert role["metadata"]["namespace"] == "ops"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["muster"], "verbs": ["create"]}
    ]
    assert binding["roleRef"]["kind"] == "Role"
