"""What the mirror keeps of an object, taken as it arrives: a large list is never in memory as it came. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from clusters.k8s.values import JsonObject
from clusters.watch.diagnose import ObjectView, PodView, Trouble, object_view, pod_view, warning_of
from clusters.watch.inventory import Catalogue, NodeView, node_view
from clusters.watch.usage import PodUsage, usage_of

OBJECT_KINDS: Mapping[str, str] = {"jobs": "Job", "deployments": "Deployment", "statefulsets": "StatefulSet"}


@dataclass(frozen=True, slots=True)
class ForeignPod:
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

    def read(self, kind: str, body: JsonObject) -> Reading:
        """Return what is kept of an object of a kind (its plural name)."""
        if kind == "pods":
            return self._pod(body)
        if kind == "nodes":
            return node_view(body, self.catalogue.flavors)
        if kind == "events":
            return _warning(body)
        if kind == "persistentvolumeclaims":
            return _claim(body)
        return object_view(OBJECT_KINDS[kind], body, domain=self.domain)

    def _pod(self, body: JsonObject) -> PodView | ForeignPod:
        carried = body["metadata"].get("labels") or {}
        if all(carried.get(key) == value for key, value in self.ours.items()):
            return pod_view(body, domain=self.domain, gpu_resources=self.catalogue.gpu_resources)
        return ForeignPod(body["metadata"]["uid"], usage_of(body))


def _warning(event: JsonObject) -> WarningView:
    about, trouble = warning_of(event) or ("", Trouble())
    return WarningView(
        uid=event["metadata"]["uid"],
        about=about,
        trouble=trouble,
        at=str(event.get("lastTimestamp") or event.get("eventTime") or ""),
    )


def _claim(item: JsonObject) -> ClaimView:
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    asked = (spec.get("resources") or {}).get("requests") or {}
    size = (status.get("capacity") or {}).get("storage") or asked.get("storage")
    return ClaimView(
        uid=metadata["uid"],
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        access_modes=spec.get("accessModes") or [],
        phase=(status.get("phase") or "")[:12],
        size=str(size or "")[:40],
        storage_class=spec.get("storageClassName") or "",
    )
