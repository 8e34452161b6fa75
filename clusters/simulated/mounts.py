"""Volumes of a pod: claims that must exist, and claims that only one node may use."""

from clusters.simulated.resources import CLAIMS, PODS, Obj
from clusters.simulated.store import Store

_TERMINAL = ("Succeeded", "Failed")


def claim_names(pod: Obj) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if each.get("persistentVolumeClaim")]


def missing_claim(store: Store, pod: Obj) -> str:
    """The scheduler's text for a claim that is not there or not usable; empty if all are."""
    for name in claim_names(pod):
        claim = store.get(CLAIMS, pod["metadata"]["namespace"], name)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim["metadata"].get("deletionTimestamp"):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if (claim.get("status") or {}).get("phase") != "Bound":
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def mount_problem(store: Store, pod: Obj) -> tuple[str, str] | None:
    """Event reason and text of a volume that cannot be mounted now."""
    missing = missing_claim(store, pod)
    if missing:
        return "FailedMount", f"MountVolume.SetUp failed for volume: {missing}"
    namespace, node = pod["metadata"]["namespace"], pod["spec"]["nodeName"]
    for name in claim_names(pod):
        claim = store.get(CLAIMS, namespace, name) or {"spec": {}}
        if set(claim["spec"].get("accessModes") or ()) <= {"ReadWriteOnce", "ReadWriteOncePod"}:
            others = _users_elsewhere(store, namespace, name, node)
            if others:
                volume = claim["spec"].get("volumeName", name)
                return "FailedAttachVolume", (
                    f'Multi-Attach error for volume "{volume}" Volume is already used by pod(s) {", ".join(others)}'
                )
    return None


def _users_elsewhere(store: Store, namespace: str, claim: str, node: str) -> list[str]:
    """Running pods on other nodes that use a claim."""
    users = []
    for stored in store.all(PODS):
        pod = stored.object
        elsewhere = pod["spec"].get("nodeName") not in (None, "", node)
        if not elsewhere or pod["metadata"]["namespace"] != namespace or pod["status"].get("phase") in _TERMINAL:
            continue
        if pod["status"].get("podIP") and claim in claim_names(pod):
            users.append(pod["metadata"]["name"])
    return sorted(users)
