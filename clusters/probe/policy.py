"""Whether the policy that pins the pods of a gang at their creation is on a cluster, and is ours."""

from collections.abc import Mapping
from typing import Any

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import NotFound, RightMissing
from clusters.manifests.adapters import born_pinned
from clusters.models import Severity
from clusters.services.findings import POLICY, Finding

_KINDS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
_Found = Mapping[str, Any] | None


def look(gateway: Gateway, domain: str) -> Finding:
    """Look whether policy and binding are there, word for word."""
    if not gateway.kinds(born_pinned.API_VERSION).issuperset(_KINDS.values()):
        return Finding(POLICY, Severity.OK, {"is": "not_offered"})
    try:
        found = {kind: _read(gateway, plural) for kind, plural in _KINDS.items()}
    except RightMissing:
        return Finding(POLICY, Severity.WARNING, {"is": "forbidden", "user": gateway.user_name()})
    return judge(found, domain)


def judge(found: Mapping[str, _Found], domain: str) -> Finding:
    """Compare what is there by kind with what should be; what differs in one word is not ours."""
    if not any(found.values()):
        return Finding(POLICY, Severity.WARNING, {"is": "missing"})
    wanted = {each["kind"]: born_pinned.fingerprint(each, domain) for each in born_pinned.objects(domain)}
    wrong = [kind for kind, mark in wanted.items() if _mark(kind, found.get(kind), domain) != mark]
    if wrong:
        return Finding(POLICY, Severity.WARNING, {"is": "altered", "kinds": wrong})
    return Finding(POLICY, Severity.OK, {"is": "in_place", "mark": wanted["MutatingAdmissionPolicy"][:12]})


def _read(gateway: Gateway, plural: str) -> _Found:
    try:
        return gateway.get(plural, "", born_pinned.NAME)
    except NotFound:
        return None


def _mark(kind: str, found: _Found, domain: str) -> str:
    # A single object may come back without its kind: the address has said it.
    return born_pinned.fingerprint({"kind": kind, "spec": found.get("spec")}, domain) if found else ""
