"""Whether the cluster's own scheduler binds all pods of a gang or none, and lets us ask for it: level L1.

A server without the gate GenericWorkload may serve the API and still drop the field that makes a pod a member of its
group. So a Job with that field is rehearsed: what comes back is what would be stored. Nothing is created.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Invalid, JsonObject, NotFound, Refused
from clusters.manifests import canary
from clusters.manifests.adapters import pod_group
from clusters.manifests.rights import IN_GROUPS, Act
from clusters.models import Severity
from clusters.probe.access import row_of
from clusters.services.findings import GROUPS, Finding


@dataclass(frozen=True, slots=True)
class Groups:
    """One look at a cluster; `domain` and `installation` are those of our labels."""

    gateway: Gateway
    domain: str
    installation: str

    def look(self, known: Collection[str], namespaces: Collection[str]) -> Finding:
        """Look, given the API groups that the server knows and the namespaces of teams."""
        if pod_group.API_VERSION not in known or pod_group.RESOURCE not in self.gateway.kinds(pod_group.API_VERSION):
            return Finding(GROUPS, Severity.OK, {"is": "not_offered"})
        try:
            stored = self._rehearsed(namespaces)
        except (Refused, Invalid) as error:
            return Finding(GROUPS, Severity.UNKNOWN, {"error": error.message[:300]})
        if stored is None:
            return Finding(GROUPS, Severity.UNKNOWN, {"is": "no_namespace"})
        if not pod_group.is_grouped(stored["spec"]["template"]["spec"]):
            return Finding(GROUPS, Severity.OK, {"is": "dropped"})
        if missing := sorted(self._missing(namespaces)):
            rows = [row_of(act) for act in missing]
            numbers = {"is": "forbidden", "user": self.gateway.user_name(), "missing": rows}
            return Finding(GROUPS, Severity.WARNING, numbers)
        return Finding(GROUPS, Severity.OK, {"is": "ready"})

    def _rehearsed(self, namespaces: Collection[str]) -> JsonObject | None:
        """The Job as the server would store it, in the first namespace that is there; None: in none of them."""
        for namespace in namespaces:
            body = canary.job(namespace, self.installation, self.domain)
            template = body["spec"]["template"]
            template["spec"] = pod_group.grouped(template["spec"], body["metadata"]["name"])
            # A name of its own: the trial run may stand there right now.
            body["metadata"]["name"] += "-group"
            try:
                return self.gateway.rehearse("jobs", namespace, body)
            except NotFound:
                continue
        return None

    def _missing(self, namespaces: Collection[str]) -> Iterator[Act]:
        for namespace in namespaces:
            acts = (act for right in IN_GROUPS for act in right.acts(namespace))
            yield from (act for act in acts if not self.gateway.may(act.attributes()))
