"""What the objects are made of: plain values, so that this floor knows neither jobs nor teams.

Quantities are Kubernetes strings, times are seconds, GPUs are whole devices per pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
RestartPolicy = Literal["Never", "OnFailure"]
# What a training attempt is on its cluster.
TrainingObject = Literal["job", "pod", "statefulset"]
ConcurrencyPolicy = Literal["Forbid", "Allow", "Replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose objects these are: `name` and `namespace` on the cluster, the rest goes into labels."""

    name: str
    namespace: str
    domain: str
    installation: str
    run: str
    attempt: int
    epoch: int
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMount:
    """A persistent volume claim at a path."""

    claim: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretVariable:
    """A key of a secret as the variable `env`."""

    env: str
    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFile:
    """A key of a secret as the file `path`."""

    name: str
    key: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeValues:
    """A git checkout before the main container starts; `path` is the folder in it where the command runs."""

    image: str
    url: str
    ref: str
    path: str | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationValues:
    """One toleration; an empty effect means every effect."""

    key: str
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeValues:
    """An HTTP probe."""

    path: str
    port: int
    delay_s: int
    period_s: int
    timeout_s: int | None = None
    failure_threshold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePagesValues:
    """Memory in pages of one size."""

    size: str
    amount: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerValues:
    """The main container; `requests` and `limits` are CPU and memory, GPUs stand in PodValues."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret_variables: tuple[SecretVariable, ...] = ()
    secret_files: tuple[SecretFile, ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[ClaimMount, ...] = ()
    shared_memory: str | None = None
    huge_pages: HugePagesValues | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodValues:
    """One worker or replica. `accelerator_resource` is what its node calls the device, "nvidia.com/gpu"."""

    container: ContainerValues
    accelerator_resource: str
    gpus: int
    grace_s: int
    code: CodeValues | None = None
    tolerations: tuple[TolerationValues, ...] = ()
    priority_class_name: str | None = None
    image_pull_secret: str | None = None
    runtime_class: str | None = None
    # Labels of which the node must have one each: key to the values that will do. More keys are alternatives.
    node_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointValues:
    """Where the program finds its checkpoints, and how many attempts came before this one."""

    path: str
    interval_s: int | None
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValues:
    """Further pods of a gang, of another shape and without GPUs; `first_rank` is the rank of the first one."""

    name: str
    pod: PodValues
    count: int
    first_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangValues:
    """A training attempt. `plan` names the node of each rank: for people who read the Job and, where
    `is_born_pinned`, for the policy that pins each pod at its creation. Where `is_grouped` they are bound all or none.

    `is_gang` holds also for a gang that starts with one worker only: its program expects a rendezvous. A gang
    fails and starts again as a whole, so `restart_policy` and `backoff_limit` count for the others. `workload` "pod"
    is one worker without a controller, "statefulset" a gang whose ranks keep their names and start again for ever.
    `is_template`: it is what Jobs are made from later, each with a name that nobody knows yet.
    """

    identity: Identity
    pod: PodValues
    workers: int
    is_gang: bool
    restart_policy: RestartPolicy
    backoff_limit: int
    ttl_s: int | None
    # Seconds from the opening after which the cluster itself ends it, should the portal not do so sooner.
    deadline_s: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    is_born_pinned: bool = False
    is_grouped: bool = False
    workload: TrainingObject = "job"
    sets: tuple[SetValues, ...] = ()
    checkpoint: CheckpointValues | None = None
    is_template: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleValues:
    """A schedule: `gang` is what each of its Jobs will be."""

    gang: GangValues
    cron: str
    time_zone: str
    concurrency: ConcurrencyPolicy
    starting_deadline_s: int | None
    keep_succeeded: int
    keep_failed: int
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeValues:
    """A service: `service_port` None means that no Service object is wanted."""

    identity: Identity
    pod: PodValues
    replicas: int
    port: int | None
    service_port: int | None
    labels: Mapping[str, str] = field(default_factory=dict)
    readiness: ProbeValues | None = None
    liveness: ProbeValues | None = None
