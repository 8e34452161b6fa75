"""Whether the policies against by-passes are on a cluster as an administrator wants them."""

from collections.abc import Sequence

from django.conf import settings

from clusters.manifests import guards
from clusters.models import Cluster, Severity
from clusters.services.findings import GUARDS, Finding
from quotas.models import Guard
from quotas.sync import look
from quotas.sync.look import Picture, Seen
from quotas.sync.wanted import guards_of


def finding(cluster: Cluster, guard: str, picture: Picture) -> Finding:
    """Judge them; what differs in a word may let anything through."""
    numbers: dict[str, object] = {"wanted": guard}
    if guard == Guard.OFF:
        left = any((kind, "", name) in picture.found for kind in _KINDS for name in guards.NAMES)
        return Finding(GUARDS, Severity.WARNING if left else Severity.OK, {**numbers, "is": "left" if left else "off"})
    seen = look.judge(picture, guards_of(cluster, guard), settings.MUSTER_DOMAIN)
    states = {each.judgement.state for each in seen}
    if "unknown" in states:
        return Finding(GUARDS, Severity.UNKNOWN, {**numbers, "is": "forbidden"})
    if states == {"in_step"}:
        return Finding(GUARDS, Severity.OK, {**numbers, "is": "in_place"})
    return Finding(GUARDS, Severity.WARNING, {**numbers, "is": "differs", "differs": _named(seen)})


_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def _named(seen: Sequence[Seen]) -> list[list[str]]:
    return [[each.kind, each.name, each.judgement.state] for each in seen if each.judgement.state != "in_step"]
