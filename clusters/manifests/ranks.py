"""What the workers of a training attempt share, whichever object makes their pods."""

from collections.abc import Mapping

from clusters.manifests import names, pods
from clusters.manifests.adapters import gates
from clusters.manifests.values import CheckpointValues, GangValues, Json

MASTER_PORT = 29_500
JOB_VARIABLE = "MUSTER_JOB"
# What the first set is called among the others.
WORKERS = "worker"


def metadata(values: GangValues) -> Json:
    """Name, namespace and labels of the attempt's objects."""
    identity = values.identity
    return {"name": identity.name, "namespace": identity.namespace, "labels": labels(values)}


def labels(values: GangValues) -> dict[str, str]:
    """Those of the run and ours; what a schedule makes keeps the schedule's label when it gets a run of its own."""
    own = names.labels(values.identity, values.labels)
    return {**own, **schedule_label(values)} if values.is_template else own


def schedule_label(values: GangValues) -> dict[str, str]:
    """By it all pods of a schedule are found, whichever run they belong to."""
    return {names.label(values.identity.domain, "schedule"): values.identity.run}


def pod_spec(values: GangValues, opening: Json, *, index_label: str = names.INDEX_LABEL) -> Json:
    """The gated spec of a worker. `opening` goes first, `index_label` is where its controller writes the rank."""
    spec = pods.pod_spec(values.pod, values.identity.domain, env=_variables(values, index_label), main={})
    return gates.gated({**opening, **spec}, values.identity.domain)


def hosts_of_sets(values: GangValues) -> list[Json]:
    """The names of all pods, set by set, where there is more than the workers."""
    if not values.sets:
        return []
    name = values.identity.name
    counts = {WORKERS: (name, values.workers)} | {
        each.name: (f"{name}-{each.name}", each.count) for each in values.sets
    }
    return [
        pods.variable(
            f"MUSTER_HOSTS_{set_name.upper().replace('-', '_')}",
            ",".join(f"{job}-{index}.{name}" for index in range(count)),
        )
        for set_name, (job, count) in counts.items()
    ]


def service(values: GangValues, selector: Mapping[str, str]) -> Json:
    """Gives every rank a name before it is ready: workers look for rank 0 while all of them start."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(values), "spec": spec}


def _variables(values: GangValues, index_label: str) -> list[Json]:
    rendezvous = _rendezvous(values, index_label) if values.is_gang else []
    return rendezvous + hosts_of_sets(values) + (_checkpoint(values.checkpoint) if values.checkpoint else [])


def master(values: GangValues) -> list[Json]:
    """Where rank 0 is."""
    return [
        pods.variable("MASTER_ADDR", _first_host(values)),
        pods.variable("MASTER_PORT", str(MASTER_PORT)),
    ]


def _rendezvous(values: GangValues, index_label: str) -> list[Json]:
    """What torchrun reads (PET_*), and the plain names for programs with one process per pod."""
    first, port = _first_host(values), str(MASTER_PORT)
    named = [pods.variable_from_label(JOB_VARIABLE, names.JOB_NAME_LABEL)] if values.is_template else []
    return [
        *named,
        pods.variable("PET_NNODES", str(values.workers)),
        pods.variable("PET_NPROC_PER_NODE", str(values.pod.gpus)),
        pods.variable_from_label("PET_NODE_RANK", index_label),
        pods.variable("PET_MASTER_ADDR", first),
        pods.variable("PET_MASTER_PORT", port),
        *master(values),
        pods.variable("WORLD_SIZE", str(values.workers)),
        pods.variable_from_label("RANK", index_label),
    ]


def _first_host(values: GangValues) -> str:
    """The host of rank 0. A template's Jobs are named at their birth, so the pod says how its Job is called."""
    if values.is_template:
        return f"$({JOB_VARIABLE})-0.{values.identity.name}"
    return names.rank_host(values.identity.name, 0)


def _checkpoint(checkpoint: CheckpointValues) -> list[Json]:
    variables = [
        pods.variable("MUSTER_CHECKPOINT_PATH", checkpoint.path),
        pods.variable("MUSTER_RESTARTS", str(checkpoint.restarts)),
    ]
    if checkpoint.interval_s is not None:
        variables.append(pods.variable("MUSTER_CHECKPOINT_INTERVAL_S", str(checkpoint.interval_s)))
    return variables
