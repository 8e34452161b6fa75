"""A gang whose ranks keep their names: one StatefulSet, gated, and the headless Service that gives the names."""

from clusters.manifests import names, ranks
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import GangValues, Json


def stateful_set(values: GangValues) -> Json:
    """The StatefulSet. All pods come at once: in order, the second one would wait for ever for the gated first."""
    identity = values.identity
    spec = {
        "serviceName": identity.name,
        "replicas": values.workers,
        "podManagementPolicy": "Parallel",
        # Nothing of ours changes the template, and nobody else's change shall restart ranks one by one.
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": _selector(values)},
        "template": {
            "metadata": {"labels": ranks.labels(values)},
            "spec": ranks.pod_spec(values, {"restartPolicy": "Always"}, index_label=names.ORDINAL_LABEL),
        },
    }
    body: Json = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": ranks.metadata(values), "spec": spec}
    return with_spec_hash(body, identity.domain)


def service(values: GangValues) -> Json:
    """The headless Service of its pods."""
    return ranks.service(values, _selector(values))


def _selector(values: GangValues) -> dict[str, str]:
    identity = values.identity
    return {
        names.label(identity.domain, "run"): identity.run,
        names.label(identity.domain, "attempt"): str(identity.attempt),
    }
