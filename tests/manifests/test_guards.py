"""The policies against by-passes, as an administrator applies them. What they do is tried on a real server."""

import json
from pathlib import Path

import pytest

from clusters.manifests import drift, guards, names
from clusters.manifests.guards import Mode

GOLDEN = Path(__file__).parent / "golden" / "guards.json"
VALUES = guards.values(
    domain=names.DOMAIN, installation="default", user="", resources=["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu"]
)


def test_they_are_what_their_golden_file_says() -> None:
    assert guards.objects(VALUES, "audit") == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_to_refuse_differs_from_to_tell_in_the_bindings_alone() -> None:
    pairs = zip(guards.objects(VALUES, "audit"), guards.objects(VALUES, "deny"), strict=True)
    differing = {told["kind"] for told, refused in pairs if told != refused}
    assert differing == {"ValidatingAdmissionPolicyBinding"}


@pytest.mark.parametrize("mode", ["audit", "deny"])
def test_a_refusal_is_never_sent_together_with_a_warning(mode: Mode) -> None:
    # A server takes no binding that says both.
    bindings = [body for body in guards.objects(VALUES, mode) if "validationActions" in body["spec"]]
    assert len(bindings) == 3
    assert all(not {"Deny", "Warn"} <= set(body["spec"]["validationActions"]) for body in bindings)
    assert all(("Deny" in body["spec"]["validationActions"]) == (mode == "deny") for body in bindings)


def test_every_policy_fails_closed_and_holds_in_the_namespaces_of_this_installation_alone() -> None:
    for body in guards.objects(VALUES, "deny")[:3]:
        assert body["spec"]["failurePolicy"] == "Fail"
        selector = body["spec"]["matchConstraints"]["namespaceSelector"]
        assert selector["matchLabels"] == {"muster.internal/installation": "default"}
        assert selector["matchExpressions"] == [{"key": "muster.internal/tenant", "operator": "Exists"}]


def test_another_domain_and_account_leave_no_trace_of_ours() -> None:
    values = guards.values(domain="gpu.example.org", installation="x", user="ann", resources=[])
    text = json.dumps(guards.objects(values, "deny"))
    assert names.DOMAIN not in text
    assert "'ann'" in text
    assert "muster-system" not in text


def test_a_weakened_policy_is_told_from_ours() -> None:
    for body in guards.objects(VALUES, "deny"):
        found = {
            **body,
            "metadata": {**body["metadata"], "uid": "u"},
            "spec": {**body["spec"], "failurePolicy": "Ignore"},
        }
        assert drift.judge(body, found, names.DOMAIN).state == "altered"
