"""Services: a Deployment whose replicas are gated and released one by one, and the Service before them."""

from clusters.manifests import names, pods
from clusters.manifests.adapters import gates
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import Json, ProbeValues, ServeValues

# A replica may wait for GPUs for as long as the quota makes it: that is no failed roll-out.
PROGRESS_DEADLINE_S = 7 * 86_400


def objects(values: ServeValues) -> list[Json]:
    """All objects of the service in the order of their creation: the Deployment, then its Service."""
    return [deployment(values), *([] if values.service_port is None else [service(values)])]


def deployment(values: ServeValues) -> Json:
    """The Deployment. A roll-out gives up a replica first: there may be no GPU left to surge onto."""
    identity = values.identity
    spec = {
        "replicas": values.replicas,
        "selector": {"matchLabels": names.selector(identity, values.labels)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "progressDeadlineSeconds": PROGRESS_DEADLINE_S,
        "template": {"metadata": {"labels": _labels(values)}, "spec": _pod_spec(values)},
    }
    metadata = {"name": identity.name, "namespace": identity.namespace, "labels": _labels(values)}
    body: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return with_spec_hash(body, identity.domain)


def service(values: ServeValues) -> Json:
    """The address inside the cluster."""
    identity = values.identity
    port = {"port": values.service_port, **({} if values.port is None else {"targetPort": values.port})}
    spec = {"type": "ClusterIP", "selector": names.selector(identity, values.labels), "ports": [port]}
    metadata = {
        "name": identity.name,
        "namespace": identity.namespace,
        "labels": _labels(values),
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _labels(values: ServeValues) -> dict[str, str]:
    return names.labels(values.identity, values.labels)


def _pod_spec(values: ServeValues) -> Json:
    main: Json = {} if values.port is None else {"ports": [{"containerPort": values.port}]}
    if values.readiness is not None:
        main["readinessProbe"] = _probe(values.readiness)
    if values.liveness is not None:
        main["livenessProbe"] = _probe(values.liveness)
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": names.selector(values.identity, {})},
    }
    spec = {
        "topologySpreadConstraints": [spread],
        **pods.pod_spec(values.pod, values.identity.domain, main=main),
    }
    return gates.gated(spec, values.identity.domain)


def _probe(probe: ProbeValues) -> Json:
    return {
        "httpGet": {"path": probe.path, "port": probe.port},
        "initialDelaySeconds": probe.delay_s,
        "periodSeconds": probe.period_s,
        **({} if probe.timeout_s is None else {"timeoutSeconds": probe.timeout_s}),
        **({} if probe.failure_threshold is None else {"failureThreshold": probe.failure_threshold}),
    }
