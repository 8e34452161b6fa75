"""What the mirror keeps of an object, taken as it arrives: a large list is never in memory as it came. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from clusters.k8s.documents import Form
from clusters.watch.diagnose import ObjectView, PodView, Trouble, object_view, pod_view, warning_of
from clusters.watch.inventory import Catalogue, NodeView, node_view
from clusters.watch.shapes import Claim, ClaimSpec, ClaimStatus, Document, Event, Node, Object, Pod
from clusters.watch.usage import PodUsage, usage_of

OBJECT_KINDS: Mapping[str, str] = {
    "jobs": "Job",
    "cronjobs": "CronJob",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
}
PODS: Form[Pod] = Form(Pod)
FORMS: Mapping[str, Form[Any]] = {
    "nodes": Form(Node),
    "pods": PODS,
    **{kind: Form(Object) for kind in OBJECT_KINDS},
    "events": Form(Event),
    "persistentvolumeclaims": Form(Claim),
}


class ForeignPod(Struct, frozen=True):
    """A pod that is not ours; `usage` None while it takes nothing from a node."""

    uid: str
    usage: PodUsage | None


@dataclass(frozen=True, slots=True)
class WarningView:
    """A Warning event: what it is about (a uid, empty for other events), what it says, and when (RFC 3339)."""

    uid: str
    about: str
    trouble: Trouble
    at: str


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A volume claim; the fields are those of PersistentClaim."""

    uid: str
    namespace: str
    name: str
    access_modes: list[str]
    phase: str
    size: str
    storage_class: str


Reading = NodeView | PodView | ForeignPod | ObjectView | WarningView | ClaimView


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the objects of one cluster. `ours`: the labels that each object of ours carries."""

    domain: str
    ours: Mapping[str, str]
    catalogue: Catalogue

    def read(self, kind: str, document: Document) -> Reading:
        """Return what is kept of a document of a kind (its plural name)."""
        if isinstance(document, Pod):
            return self._pod(document)
        if isinstance(document, Node):
            return node_view(document, self.catalogue.flavors)
        if isinstance(document, Event):
            return _warning(document)
        if isinstance(document, Claim):
            return _claim(document)
        return object_view(OBJECT_KINDS[kind], document, domain=self.domain)

    def _pod(self, pod: Pod) -> PodView | ForeignPod:
        if self.ours.items() <= (pod.metadata.labels or {}).items():
            return pod_view(pod, domain=self.domain, gpu_resources=self.catalogue.gpu_resources)
        return ForeignPod(pod.metadata.uid, usage_of(pod))


def _warning(event: Event) -> WarningView:
    about, trouble = warning_of(event) or ("", Trouble())
    return WarningView(
        uid=event.metadata.uid, about=about, trouble=trouble, at=event.last_timestamp or event.event_time or ""
    )


def _claim(claim: Claim) -> ClaimView:
    metadata, spec, status = claim.metadata, claim.spec or ClaimSpec(), claim.status or ClaimStatus()
    asked = (spec.resources.requests if spec.resources else None) or {}
    size = (status.capacity or {}).get("storage") or asked.get("storage")
    return ClaimView(
        uid=metadata.uid,
        namespace=metadata.namespace or "",
        name=metadata.name,
        access_modes=spec.access_modes or [],
        phase=(status.phase or "")[:12],
        size=str(size or "")[:40],
        storage_class=spec.storage_class_name or "",
    )
