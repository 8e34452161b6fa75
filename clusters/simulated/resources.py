"""The kinds that this cluster serves."""

from dataclasses import dataclass, field
from typing import Any

Obj = dict[str, Any]


# Compared and hashed by identity: each kind is one constant, looked up thousands of times a second.
@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind. `status`: main writes leave `.status` alone, which has its own subresource.

    `generation`: `metadata.generation` counts changes of the spec. `echoes_deleted`: an immediate DELETE
    answers with the object instead of a `Status`.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    echoes_deleted: bool = False
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    api_version: str = field(init=False)
    qualified: str = field(init=False)
    prefix: bytes = field(init=False)

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "qualified", f"{self.plural}.{self.group}" if self.group else self.plural)
        opening = f'{{"kind":"{self.kind}","apiVersion":"{api_version}",'
        object.__setattr__(self, "prefix", opening.encode())


NODES = Resource("", "v1", "nodes", "Node", namespaced=False, status=True, echoes_deleted=True, short_names=("no",))
NAMESPACES = Resource(
    "", "v1", "namespaces", "Namespace", namespaced=False, status=True, echoes_deleted=True,
    short_names=("ns",),
)  # fmt: skip
PODS = Resource(
    "", "v1", "pods", "Pod", status=True, generation=True, echoes_deleted=True, short_names=("po",),
    subresources=("log", "eviction"),
)  # fmt: skip
SERVICES = Resource("", "v1", "services", "Service", status=True, echoes_deleted=True, short_names=("svc",))
CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", status=True, echoes_deleted=True,
    short_names=("pvc",),
)  # fmt: skip
VOLUMES = Resource(
    "", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, status=True, echoes_deleted=True,
    short_names=("pv",),
)  # fmt: skip
EVENTS = Resource("", "v1", "events", "Event", short_names=("ev",))
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", status=True, echoes_deleted=True, short_names=("quota",))
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",))
SERVICE_ACCOUNTS = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", echoes_deleted=True, short_names=("sa",),
    subresources=("token",),
)  # fmt: skip
JOBS = Resource("batch", "v1", "jobs", "Job", status=True, generation=True)
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", status=True, generation=True, short_names=("cj",))
DEPLOYMENTS = Resource(
    "apps", "v1", "deployments", "Deployment", status=True, generation=True, short_names=("deploy",),
    subresources=("scale",),
)  # fmt: skip
STATEFUL_SETS = Resource(
    "apps", "v1", "statefulsets", "StatefulSet", status=True, generation=True, short_names=("sts",),
    subresources=("scale",),
)  # fmt: skip
REPLICA_SETS = Resource(
    "apps", "v1", "replicasets", "ReplicaSet", status=True, generation=True, short_names=("rs",),
    subresources=("scale",),
)  # fmt: skip
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)
)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", echoes_deleted=True, short_names=("limits",))
# Stored and shown, not acted on: no network is simulated, and no expression of a policy is evaluated.
NETWORK_POLICIES = Resource(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", generation=True, short_names=("netpol",)
)
POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy",
    namespaced=False, status=True, generation=True,
)  # fmt: skip
POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
    namespaced=False, generation=True,
)  # fmt: skip

RESOURCES = (
    NODES, NAMESPACES, PODS, SERVICES, CLAIMS, VOLUMES, EVENTS, QUOTAS, SECRETS, CONFIG_MAPS,
    SERVICE_ACCOUNTS, JOBS, CRON_JOBS, DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, PRIORITY_CLASSES, RUNTIME_CLASSES,
    LIMIT_RANGES, NETWORK_POLICIES, POLICIES, POLICY_BINDINGS,
)  # fmt: skip
BY_PATH = {(r.group, r.version, r.plural): r for r in RESOURCES}
BY_OWNER = {(r.api_version, r.kind): r for r in RESOURCES}
BY_KIND = {r.kind: r for r in RESOURCES}
