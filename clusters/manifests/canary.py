"""A Job that never runs: one pod that stands at our gate and asks for next to nothing."""

from clusters.manifests import names
from clusters.manifests.adapters import gates
from clusters.manifests.patches import Operation
from clusters.manifests.values import Json

# Should the portal die half-way, the cluster itself ends and removes what is left.
LIFE_S = 120
# Never pulled: the pod never gets a node.
IMAGE = "registry.k8s.io/pause:3.10"
_AMOUNTS = {"cpu": "1m", "memory": "1Mi"}


def name_of(installation: str) -> str:
    """The same name in every round: what an earlier one left behind is found again."""
    return names.object_name("muster-canary", installation.lower().replace("_", "-").replace(".", "-")[:30], 0)


def mark(domain: str) -> str:
    """The label by which a canary is known. Not our installation's label: nothing else of ours shall see it."""
    return names.label(domain, "canary")


def job(namespace: str, installation: str, domain: str) -> Json:
    """The Job, suspended, as restricted as a pod can be: what refuses it refuses every run of ours."""
    name, labels = name_of(installation), {mark(domain): "1", names.MANAGED_BY_LABEL: names.MANAGED_BY}
    metadata: Json = {"name": name, "namespace": namespace, "labels": labels}
    spec: Json = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0,
        "activeDeadlineSeconds": LIFE_S,
        "ttlSecondsAfterFinished": 0,
        "template": {"metadata": {"labels": labels}, "spec": gates.gated(_pod_spec(), domain)},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def touch(uid: str, domain: str) -> list[Operation]:
    """Change nothing but a label: whether pods may be patched, without letting one go."""
    key = mark(domain).replace("~", "~0").replace("/", "~1")
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "replace", "path": f"/metadata/labels/{key}", "value": "2"},
    ]


def _pod_spec() -> Json:
    container: Json = {
        "name": "canary",
        "image": IMAGE,
        "resources": {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65_534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
