"""A quick run: one bare pod, gated. Nothing replaces it, and nothing but us removes it."""

from clusters.manifests import names, ranks
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import GangValues, Json


def pod(values: GangValues) -> Json:
    """The Pod. It has no controller that would number it, so its rank is ours to write."""
    domain = values.identity.domain
    deadline = {} if values.deadline_s is None else {"activeDeadlineSeconds": values.deadline_s}
    metadata = ranks.metadata(values)
    metadata["labels"] = {**metadata["labels"], names.label(domain, "rank"): "0"}
    spec = ranks.pod_spec(values, {"restartPolicy": "Never", **deadline})
    return with_spec_hash({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, domain)
