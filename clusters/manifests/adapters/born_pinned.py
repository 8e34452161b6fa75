"""Level B, Kubernetes 1.36 and newer: a MutatingAdmissionPolicy gives each pod of a gang its node while it is born.

The Job's pod template carries the plan, one node name per rank, and still our gate. The policy looks at pods that the
Job controller creates: it pins the pod to the node of its rank, takes the gate away and drops the plan, so that a gang
costs no write per pod. Where the policy is missing or was altered the gate stays, and the driver releases the pods as
on level L0: a pod never runs at a place that nobody decided.

Everything that the server would fill in is written out, so that what it returns can be compared by its fingerprint.
Tried on Kubernetes 1.36.3. Source of the mechanism: KEP-3962, mutating admission policies.
"""

from collections.abc import Mapping
from typing import Any

from clusters.manifests import names
from clusters.manifests.hashing import spec_hash
from clusters.manifests.values import Json

API_VERSION = "admissionregistration.k8s.io/v1"
NAME = "muster-pin"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
# Node affinity terms of the template that can get the node; a pod with more of them keeps its gate.
TERMS_MAX = 8
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS_PATH = f"/spec/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms/"


def plan_key(domain: str) -> str:
    """The annotation of the pod template that names the node of each rank."""
    return names.label(domain, "plan")


def with_plan(template: Json, plan: tuple[str, ...], domain: str) -> Json:
    """The pod template with the plan of its gang."""
    return {**template, "metadata": {**template["metadata"], "annotations": {plan_key(domain): ",".join(plan)}}}


def objects(domain: str) -> list[Json]:
    """What an administrator applies once on a cluster: the policy, then its binding."""
    return [policy(domain), binding()]


def policy(domain: str) -> Json:
    """The MutatingAdmissionPolicy; it fails closed: a pod that it cannot pin is not created."""
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                    "scope": "*",
                }
            ],
        },
        "matchConditions": [
            {"name": "from-job-controller", "expression": f"request.userInfo.username == '{JOB_CONTROLLER}'"},
            {"name": "has-plan", "expression": _has_plan(domain)},
        ],
        "variables": [
            {"name": "node", "expression": _node(domain)},
            {"name": "terms", "expression": _terms()},
            {"name": "gates", "expression": "object.spec.?schedulingGates.orValue([]).map(gate, gate.name)"},
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _patch(domain)}}],
    }
    return {"apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": NAME}, "spec": spec}


def binding() -> Json:
    """The MutatingAdmissionPolicyBinding: the policy holds in all namespaces."""
    return {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME},
    }


def fingerprint(found: Mapping[str, Any], domain: str) -> str:
    """SHA-256 of what an object says, whoever stored it: its kind and its spec, 64 hex digits."""
    return spec_hash([{"kind": found.get("kind"), "spec": found.get("spec")}], domain)


def _has_plan(domain: str) -> str:
    annotations = "object.metadata.annotations"
    return f"has({annotations}) && '{plan_key(domain)}' in {annotations} && '{names.INDEX_LABEL}' in {annotations}"


def _node(domain: str) -> str:
    annotations = "object.metadata.annotations"
    return f"{annotations}['{plan_key(domain)}'].split(',')[int({annotations}['{names.INDEX_LABEL}'])]"


def _terms() -> str:
    return f"object.spec.?affinity.?nodeAffinity.?{_REQUIRED}.?nodeSelectorTerms.orValue([])"


def _patch(domain: str) -> str:
    """Pin, then open the gate, then drop the plan: the list is stored once, in the Job."""
    gate = names.gate(domain)
    escaped = plan_key(domain).replace("~", "~0").replace("/", "~1")
    return (
        f"size(variables.terms) > {TERMS_MAX} ? [] : ({_pin()})"
        f" + (variables.gates.exists(name, name == '{gate}')"
        f' ? [JSONPatch{{op: "remove", path: "/spec/schedulingGates/" + string(variables.gates.indexOf(\'{gate}\'))}}]'
        " : [])"
        f' + [JSONPatch{{op: "remove", path: "/metadata/annotations/{escaped}"}}]'
    )


def _pin() -> str:
    """The terms of the template are alternatives, so each one gets the node; without terms the pod gets one."""
    affinity = f"Object.spec.affinity{{nodeAffinity: {_affinity()}}}"
    return (
        f"size(variables.terms) > 0 ? {_each_term()}"
        f" : !has(object.spec.affinity) ? {_add('/spec/affinity', affinity)}"
        f" : !has(object.spec.affinity.nodeAffinity) ? {_add('/spec/affinity/nodeAffinity', _affinity())}"
        f" : {_add(f'/spec/affinity/nodeAffinity/{_REQUIRED}', _required())}"
    )


def _add(path: str, value: str) -> str:
    return f'[JSONPatch{{op: "add", path: "{path}", value: {value}}}]'


def _each_term() -> str:
    """Two operations per term: the server of 1.36 breaks on a list of objects as a value, an empty one goes first."""
    indices = f"[{', '.join(str(index) for index in range(TERMS_MAX))}].filter(i, i < size(variables.terms)"
    path = f'"{_TERMS_PATH}" + string(i) + "/matchFields'
    return (
        f"{indices} && !has(variables.terms[i].matchFields))"
        f'.map(i, JSONPatch{{op: "add", path: {path}", value: []}})'
        f' + {indices}).map(i, JSONPatch{{op: "add", path: {path}/-", value: {_field()}}})'
    )


def _affinity() -> str:
    return f"Object.spec.affinity.nodeAffinity{{{_REQUIRED}: {_required()}}}"


def _required() -> str:
    kind = f"Object.spec.affinity.nodeAffinity.{_REQUIRED}"
    return f"{kind}{{nodeSelectorTerms: [{kind}.nodeSelectorTerms{{matchFields: [{_field()}]}}]}}"


def _field() -> str:
    kind = f"Object.spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms.matchFields"
    return f'{kind}{{key: "metadata.name", operator: "In", values: [variables.node]}}'
