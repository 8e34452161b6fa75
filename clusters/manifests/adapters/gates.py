"""Level L0, any cluster since 1.30: a scheduling gate holds every pod until its gang has a place."""

from clusters.manifests import names
from clusters.manifests.values import Json


def gated(pod_spec: Json, domain: str) -> Json:
    """The pod spec with our gate: no scheduler looks at the pod before `patches.release` removes it."""
    return {"schedulingGates": [{"name": names.gate(domain)}], **pod_spec}
