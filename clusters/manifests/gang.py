"""Training: one Indexed Job per attempt, suspended and gated; a headless Service for more than one rank."""

from clusters.manifests import names, pods
from clusters.manifests.adapters import born_pinned, gates
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import CheckpointValues, GangValues, Json

MASTER_PORT = 29_500


def objects(values: GangValues) -> list[Json]:
    """All objects of the attempt in the order of their creation: the Job, then the Service that it owns."""
    return [job(values), *([service(values)] if values.is_gang else [])]


def job(values: GangValues) -> Json:
    """The Job, created suspended: nothing runs before it is opened and each of its pods is released."""
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": values.workers,
        "parallelism": values.workers,
        "podReplacementPolicy": "Failed",
        **_failure_policy(values),
        **({} if values.deadline_s is None else {"activeDeadlineSeconds": values.deadline_s}),
        **({} if values.ttl_s is None else {"ttlSecondsAfterFinished": values.ttl_s}),
        "template": _template(values),
    }
    plan = {born_pinned.plan_key(values.identity.domain): ",".join(values.plan)} if values.plan else {}
    metadata = {
        "name": values.identity.name,
        "namespace": values.identity.namespace,
        "labels": _labels(values),
        "annotations": plan,
    }
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return with_spec_hash(body, values.identity.domain)


def _template(values: GangValues) -> Json:
    template: Json = {"metadata": {"labels": _labels(values)}, "spec": _pod_spec(values)}
    if values.is_born_pinned:
        return born_pinned.with_plan(template, values.plan, values.identity.domain)
    return template


def service(values: GangValues) -> Json:
    """Gives every rank a name before it is ready: workers look for rank 0 while all of them start."""
    metadata = {
        "name": values.identity.name,
        "namespace": values.identity.namespace,
        "labels": _labels(values),
    }
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.JOB_NAME_LABEL: values.identity.name},
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _labels(values: GangValues) -> dict[str, str]:
    return names.labels(values.identity, values.labels)


def _failure_policy(values: GangValues) -> Json:
    if not values.is_gang:
        return {"backoffLimit": values.backoff_limit}
    # "Ignore" would replace one pod of a gang whose peers have died; gangs start again whole.
    disrupted = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"backoffLimit": 0, "podFailurePolicy": {"rules": [disrupted]}}


def _pod_spec(values: GangValues) -> Json:
    spec = pods.pod_spec(values.pod, values.identity.domain, env=_variables(values), main={})
    if values.is_gang:
        spec = {"subdomain": values.identity.name, "restartPolicy": "Never", **spec}
    else:
        spec = {"restartPolicy": values.restart_policy, **spec}
    return gates.gated(spec, values.identity.domain)


def _variables(values: GangValues) -> list[Json]:
    rendezvous = _rendezvous(values) if values.is_gang else []
    return rendezvous + (_checkpoint(values.checkpoint) if values.checkpoint else [])


def _rendezvous(values: GangValues) -> list[Json]:
    """What torchrun reads (PET_*), and the plain names for programs with one process per pod."""
    master, port = names.rank_host(values.identity.name, 0), str(MASTER_PORT)
    return [
        pods.variable("PET_NNODES", str(values.workers)),
        pods.variable("PET_NPROC_PER_NODE", str(values.pod.gpus)),
        pods.variable_from_label("PET_NODE_RANK", names.INDEX_LABEL),
        pods.variable("PET_MASTER_ADDR", master),
        pods.variable("PET_MASTER_PORT", port),
        pods.variable("MASTER_ADDR", master),
        pods.variable("MASTER_PORT", port),
        pods.variable("WORLD_SIZE", str(values.workers)),
        pods.variable_from_label("RANK", names.INDEX_LABEL),
    ]


def _checkpoint(checkpoint: CheckpointValues) -> list[Json]:
    variables = [
        pods.variable("MUSTER_CHECKPOINT_PATH", checkpoint.path),
        pods.variable("MUSTER_RESTARTS", str(checkpoint.restarts)),
    ]
    if checkpoint.interval_s is not None:
        variables.append(pods.variable("MUSTER_CHECKPOINT_INTERVAL_S", str(checkpoint.interval_s)))
    return variables
