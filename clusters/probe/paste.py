"""What an administrator of the cluster applies so that a finding goes away, as YAML."""

from django.conf import settings

from clusters.manifests.adapters import born_pinned
from clusters.manifests.rights import POLICY, Act, grants, renewal, service_account
from clusters.manifests.text import to_yaml
from clusters.manifests.values import Json
from clusters.models import ClusterFinding
from clusters.services.findings import GROUPS


def yaml_for(finding: ClusterFinding) -> str:
    """Return the text; empty when nothing that can be applied would help."""
    return to_yaml(_objects(finding)) if _objects(finding) else ""


def _objects(finding: ClusterFinding) -> list[Json]:
    user = str(finding.numbers.get("user") or "")
    kind = finding.numbers.get("is")
    if finding.code == "rights":
        return grants((Act(*row) for row in finding.numbers.get("missing") or ()), user)
    if finding.code == GROUPS and kind == "forbidden":
        return grants((Act(*row) for row in finding.numbers.get("missing") or ()), user)
    if finding.code == "policy" and kind in ("missing", "altered", "forbidden"):
        looks = [act for right in POLICY for act in right.acts()] if kind == "forbidden" else []
        return [*grants(looks, user), *born_pinned.objects(settings.MUSTER_DOMAIN)]
    if finding.code == "token" and kind == "short" and (account := service_account(user)):
        return grants(renewal(account[1]).acts(account[0]), user)
    return []
