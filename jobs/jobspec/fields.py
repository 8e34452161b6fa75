"""The one document behind form, REST and YAML: what a person asks for, before any cluster has been chosen.

Field names are public (REST, YAML, form): later fields are added, none is renamed. Here are no checks:
`jobs.jobspec.checks.parse` is the only maker of a JobSpec from outside data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

Kind = Literal["training", "inference"]
Workload = Literal["job", "pod", "statefulset", "cronjob", "deployment"]
Concurrency = Literal["forbid", "allow", "replace"]
TopologyMode = Literal["none", "prefer", "require"]
SpreadPolicy = Literal["auto", "pack", "spread"]
Qos = Literal["guaranteed"]
PageSize = Literal["2Mi", "1Gi"]
Operator = Literal["Equal", "Exists"]
Effect = Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"]

# Fields whose absence means a default: "none" must be written as null to survive a round trip.
NULL_IS_A_CHOICE: Mapping[Kind, frozenset[str]] = {
    "training": frozenset({"ttl_s"}),
    "inference": frozenset({"port", "service_port"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """One key of a Kubernetes secret, given to the container as a variable or as a file at `mount_path`."""

    name: str
    key: str
    env: str | None = None
    mount_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A git repository to check out into /workspace; `path` is the folder in it where the command starts."""

    git_url: str
    ref: str = "HEAD"
    path: str | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Request and limit of CPU or memory per worker, as Kubernetes quantities."""

    request: str
    limit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePages:
    """Memory in pages of one size, a whole number of them per worker; it is not part of `memory`."""

    amount: str
    size: PageSize = "2Mi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How close the workers must be: within one domain of `level` (zone, block, rack, node)."""

    mode: TopologyMode = "none"
    level: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A persistent volume claim of the team's namespace, mounted at an absolute path."""

    claim: str
    mount_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A taint that the pods accept; `seconds` bounds it for NoExecute."""

    key: str
    operator: Operator = "Equal"
    value: str = ""
    effect: Effect = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods without GPUs beside the workers: parameter servers, loaders. What is left out is as with the workers."""

    name: str
    workers: int = 1
    image: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cpu: Amount | None = None
    memory: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a run is made, and what happens when the one before is not over: "forbid" waits for it, "replace" stops it.

    A run that could not be made within `starting_deadline_s` of its time is left out (None: made late). The cluster
    keeps the Jobs of the last `keep_succeeded` and `keep_failed` runs.
    """

    cron: str
    time_zone: str = "Etc/UTC"
    concurrency: Concurrency = "forbid"
    starting_deadline_s: int | None = None
    keep_succeeded: int = 3
    keep_failed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where the program keeps its checkpoints and about how often (seconds) it writes one."""

    path: str
    interval_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An HTTP probe of a service; seconds, and `failure_threshold` failures in a row before it counts."""

    path: str
    port: int
    delay_s: int
    period_s: int
    timeout_s: int | None = None
    failure_threshold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A training run or a service. Quantities are Kubernetes strings, times are seconds, GPUs are per worker.

    `qos` "guaranteed" means that each container gets exactly the CPU and memory that it asks for, which a node needs
    to give it whole cores of its own.

    Fields of services (`replicas` to `liveness`) are None for training; `backoff_limit`, `ttl_s`,
    `max_runtime_s` and `checkpoint` are None for services, which have one worker per replica. `workload` says what it
    is on a cluster: training is a "job", a "pod" for a quick run of one worker, a "statefulset", whose workers keep
    their names, start again by themselves and run until they are stopped, or a "cronjob", whose `schedule` makes jobs.
    """

    name: str
    team: str
    queue: str | None = None
    kind: Kind = "training"
    workload: Workload = "job"
    priority: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    image: str
    image_pull_secret: str | None = None
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[SecretRef, ...] = ()
    code: Code | None = None
    workers: int = 1
    min_workers: int = 1
    gpus_per_worker: int = 1
    accelerators: tuple[str, ...] = ()
    cpu: Amount | None = None
    memory: Amount | None = None
    shared_memory: str | None = None
    huge_pages: HugePages | None = None
    qos: Qos | None = None
    runtime_class: str | None = None
    topology: Topology = field(default_factory=Topology)
    spread_policy: SpreadPolicy = "auto"
    volumes: tuple[Volume, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    max_runtime_s: int | None = None
    backoff_limit: int | None = None
    ttl_s: int | None = None
    checkpoint: Checkpoint | None = None
    pod_sets: tuple[PodSet, ...] = ()
    schedule: Schedule | None = None
    clusters: tuple[str, ...] = ()
    replicas: int | None = None
    port: int | None = None
    service_port: int | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    parent: str | None = None

    @property
    def gpus(self) -> int:
        """All GPUs that it asks for at once."""
        return self.gpus_per_worker * (self.workers if self.replicas is None else self.replicas)

    @property
    def is_gang(self) -> bool:
        """More than one worker, or other pods beside it: they start and end together."""
        return self.workers > 1 or bool(self.pod_sets)

    def as_document(self) -> dict[str, object]:
        """The document in plain JSON values and field order, defaults included; `parse` reads it back."""
        chosen = NULL_IS_A_CHOICE[self.kind]
        values = ((item.name, _plain(getattr(self, item.name))) for item in fields(self))
        return {name: value for name, value in values if not _is_unset(value) or name in chosen}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        parts = ((item.name, _plain(getattr(value, item.name))) for item in fields(value))
        return {name: part for name, part in parts if not _is_unset(part)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _is_unset(value: object) -> bool:
    return value is None or value in ("", [], {})
