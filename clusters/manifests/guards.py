"""Policies against by-passes, for an administrator to apply (ValidatingAdmissionPolicy, Kubernetes 1.30).

In the namespaces of teams only the portal opens our gates, sets our labels and deletes a pod at its gate, and a pod
that asks for GPUs is one of ours. The controllers of Kubernetes act for whoever made an object, so they may do all of
the first; what they may not is make GPU pods for an object that is not ours. The portal writes none of this: who could
might take its own guard away.

First `audit` tells (warnings to the client, annotations in the server's audit log), then `deny` refuses. Everything
that a server fills in is written out, so that what it returns can be compared. Tried on Kubernetes 1.36.3.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from clusters.manifests import names
from clusters.manifests.drift import stamped
from clusters.manifests.rights import ACCOUNT, NAMESPACE
from clusters.manifests.values import Json

API_VERSION = "admissionregistration.k8s.io/v1"
GATES, LABELS, GPUS = "muster-guard-gates", "muster-guard-labels", "muster-guard-gpus"
NAMES = (GATES, LABELS, GPUS)
Mode = Literal["audit", "deny"]
ACTIONS: dict[Mode, list[str]] = {"audit": ["Warn", "Audit"], "deny": ["Deny", "Audit"]}

# Whoever is in system:masters may take the policies away; nodes report on pods that they were given.
_TRUSTED_USERS = ("system:kube-controller-manager", "system:kube-scheduler")
_TRUSTED_GROUPS = ("system:masters", "system:nodes", "system:serviceaccounts:kube-system")
_GROUPS = "request.userInfo.?groups.orValue([])"
# Kinds whose labels reach pods, by API group.
_LABELLED = {
    "": ("pods", "services", "replicationcontrollers"),
    "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "batch": ("jobs", "cronjobs"),
}
_TEMPLATES = (".?spec.?template", ".?spec.?jobTemplate", ".?spec.?jobTemplate.?spec.?template")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardValues:
    """For whom: the portal's account as the server knows it, and what devices are called."""

    domain: str
    installation: str
    user: str
    resources: tuple[str, ...]


def values(*, domain: str, installation: str, user: str, resources: Iterable[str]) -> GuardValues:
    """Return the values; without a user, for the account that our manifests make."""
    user = user or f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    return GuardValues(domain=domain, installation=installation, user=user, resources=tuple(sorted(set(resources))))


def objects(values: GuardValues, mode: Mode) -> list[Json]:
    """Every policy with its binding."""
    policies = [_gates(values), _labels(values), _gpus(values)]
    bodies = [*policies, *(_binding(name, mode) for name in NAMES)]
    return [
        stamped({**body, "metadata": {**body["metadata"], "labels": _own(values)}}, values.domain) for body in bodies
    ]


def _gates(values: GuardValues) -> Json:
    gate = names.gate(values.domain)
    validations = [
        ("request.operation != 'UPDATE' || !variables.was || variables.is", f"Only Muster opens the gate {gate}."),
        (
            "request.operation != 'DELETE' || !variables.was",
            f"Only Muster deletes a pod at the gate {gate}: cancel its run.",
        ),
    ]
    variables = {"was": _is_gated("oldObject", gate), "is": f"object != null && {_is_gated('object', gate)}"}
    rules = [_rule("", ("pods",), ("UPDATE", "DELETE"))]
    return _policy(values, GATES, rules, _not_trusted(values), variables, validations)


def _labels(values: GuardValues) -> Json:
    prefix = f"{values.domain}/"
    variables = {"now": _marks("object", prefix), "before": f"oldObject == null ? [] : {_marks('oldObject', prefix)}"}
    same = "variables.now.all(mark, mark in variables.before) && variables.before.all(mark, mark in variables.now)"
    validations = [(same, f"Only Muster sets labels and annotations that begin with {prefix}")]
    rules = [_rule(group, kinds, ("CREATE", "UPDATE")) for group, kinds in _LABELLED.items()]
    return _policy(values, LABELS, rules, _not_trusted(values), variables, validations)


def _gpus(values: GuardValues) -> Json:
    listed = ", ".join(f"'{name}'" for name in sorted({*values.resources, "nvidia.com/gpu"}))
    asks = f"name in [{listed}] || name.startsWith('nvidia.com/mig-')"
    containers = "(object.spec.containers + object.spec.?initContainers.orValue([]))"
    amounts = " || ".join(
        f"each.?resources.?{part}.orValue({{}}).exists(name, {asks})" for part in ("limits", "requests")
    )
    run, owner = names.label(values.domain, "run"), names.label(values.domain, "installation")
    marks = "object.metadata.?labels.orValue({})"
    variables = {
        "asks": f"{containers}.exists(each, {amounts})",
        "ours": f"'{run}' in {marks} && '{owner}' in {marks} && {marks}['{owner}'] == '{values.installation}'",
    }
    validations = [("!variables.asks || variables.ours", "Pods with GPUs come from Muster here: submit the run there.")]
    condition = f"!('system:masters' in {_GROUPS})"
    return _policy(values, GPUS, [_rule("", ("pods",), ("CREATE",))], condition, variables, validations)


def _policy(
    values: GuardValues,
    name: str,
    rules: list[Json],
    condition: str,
    variables: dict[str, str],
    validations: list[tuple[str, str]],
) -> Json:
    """One policy over the namespaces of this installation's teams; it fails closed."""
    tenants = {
        "matchLabels": {names.label(values.domain, "installation"): values.installation},
        "matchExpressions": [{"key": names.label(values.domain, "tenant"), "operator": "Exists"}],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": tenants,
            "objectSelector": {},
            "resourceRules": rules,
        },
        "matchConditions": [{"name": "who", "expression": condition}],
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": [
            {"expression": text, "message": message, "reason": "Forbidden"} for text, message in validations
        ],
    }
    return {"apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def _binding(name: str, mode: Mode) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ACTIONS[mode]},
    }


def _own(values: GuardValues) -> dict[str, str]:
    installation = {names.label(values.domain, "installation"): values.installation}
    return {names.MANAGED_BY_LABEL: names.MANAGED_BY, **installation}


def _rule(group: str, kinds: Iterable[str], operations: Iterable[str]) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": list(kinds),
        "scope": "*",
    }


def _not_trusted(values: GuardValues) -> str:
    users = ", ".join(f"'{user}'" for user in (values.user, *_TRUSTED_USERS))
    groups = ", ".join(f"'{group}'" for group in _TRUSTED_GROUPS)
    return f"!(request.userInfo.username in [{users}]) && !{_GROUPS}.exists(group, group in [{groups}])"


def _is_gated(body: str, gate: str) -> str:
    return f"{body}.spec.?schedulingGates.orValue([]).exists(each, each.name == '{gate}')"


def _marks(body: str, prefix: str) -> str:
    """Our labels and annotations as a list of texts: on the object, and on what it makes pods from."""
    return " + ".join(
        f"{body}{place}.?metadata.?{part}.orValue({{}}).filter(key, key.startsWith('{prefix}'))"
        f".map(key, '{place}{part} ' + key + '=' + {body}{place}.?metadata.?{part}.orValue({{}})[key])"
        for place in ("", *_TEMPLATES)
        for part in ("labels", "annotations")
    )
