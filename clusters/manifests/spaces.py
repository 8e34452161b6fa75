"""The space of a team on a cluster: its namespace, and what keeps it apart from others and within its share.

Everything that a server would fill in is written out, and quantities are in their canonical form, so that what it
returns can be compared field by field (`clusters.manifests.drift`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusters.manifests import names
from clusters.manifests.drift import stamped
from clusters.manifests.values import Json

NAME = "muster"
POD_SECURITY = "pod-security.kubernetes.io"
# Kubernetes keeps these names for itself.
RESERVED_PREFIX = "system-"
DNS_PORT = 53
# Where clouds serve the credentials of their machines; no run has any business there.
_MACHINE_CREDENTIALS = {4: "169.254.0.0/16", 6: "fd00:ec2::254/128"}
_SUFFIXES = ("", "k", "M", "G")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceValues:
    """A team's share of a cluster.

    gpus: the most whole devices by resource name. callers: namespaces whose pods may call into this one.
    egress: address ranges that its pods may reach beyond their own namespace.
    """

    domain: str
    installation: str
    team: str
    namespace: str
    gpus: Mapping[str, int] = field(default_factory=dict)
    callers: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RungValues:
    """A rung of the priority ladder."""

    name: str
    value: int
    description: str = ""


def most_gpus(nominal: int, used: int) -> int:
    """Return how many devices a namespace may have charged at once, so that no start of ours is ever refused.

    Kubernetes charges a pod from its creation at the gate until it has ended or is gone, and its controller counts
    that down some seconds late; we free GPUs at the proof that a pod never had a node, which may come earlier. So while
    one set of runs goes and the next comes, a team is charged for both: twice its quota at the most. Where a
    quota was lowered below what is in use, what is in use counts: a lost replica of a service must come again.
    """
    return 2 * max(nominal, used)


def objects(values: SpaceValues) -> list[Json]:
    """Everything that a space consists of, in the order in which it can be created."""
    bodies = [namespace(values), quota(values), limits(values), isolation(values)]
    return [stamped(body, values.domain) for body in bodies]


def namespace(values: SpaceValues) -> Json:
    """The namespace: no privileged pods, and a warning about every pod that could be stricter."""
    levels = {"enforce": "baseline", "audit": "restricted", "warn": "restricted"}
    labels = {
        **_labels(values.domain, values.installation),
        names.label(values.domain, "tenant"): values.team,
        **{f"{POD_SECURITY}/{mode}": level for mode, level in levels.items()},
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": values.namespace, "labels": labels}}


def quota(values: SpaceValues) -> Json:
    """The second line behind our own quota: GPUs alone, since all else that a run takes is counted by nodes."""
    hard = {f"requests.{resource}": canonical(most) for resource, most in sorted(values.gpus.items())}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": _metadata(values), "spec": {"hard": hard}}


def limits(values: SpaceValues) -> Json:
    """What a container asks for that says nothing: so little that no place is missed for it, but not nothing."""
    item = {"type": "Container", "defaultRequest": {"cpu": "10m", "memory": "32Mi"}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": _metadata(values), "spec": {"limits": [item]}}


def isolation(values: SpaceValues) -> Json:
    """Calls come from the same namespace and the callers, and go to it, to DNS, and to the given ranges."""
    same: Json = {"podSelector": {}}
    dns = [{"protocol": protocol, "port": DNS_PORT} for protocol in ("UDP", "TCP")]
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [same, *(_namespace_peer(name) for name in values.callers)]}],
        "egress": [{"to": [same]}, {"ports": dns}, *([{"to": _ranges(values.egress)}] if values.egress else [])],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(values),
        "spec": spec,
    }


def priority_class(rung: RungValues, *, domain: str, installation: str) -> Json:
    """A rung on the cluster. The portal preempts, not kube-scheduler. Raise ValueError for a reserved name."""
    if rung.name.startswith(RESERVED_PREFIX):
        raise ValueError(f"{rung.name} belongs to Kubernetes")
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": rung.name, "labels": _labels(domain, installation)},
        "value": rung.value,
        "preemptionPolicy": "Never",
        **({"description": rung.description} if rung.description else {}),
    }
    return stamped(body, domain)


def canonical(count: int) -> str:
    """Return a whole number as an API server writes it: with the largest suffix that leaves no remainder."""
    for suffix in _SUFFIXES:
        if count == 0 or count % 1000:
            return f"{count}{suffix}"
        count //= 1000
    return f"{count}T"


def _labels(domain: str, installation: str) -> dict[str, str]:
    return {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.label(domain, "installation"): installation}


def _metadata(values: SpaceValues) -> Json:
    labels = _labels(values.domain, values.installation)
    return {"name": NAME, "namespace": values.namespace, "labels": labels}


def _namespace_peer(name: str) -> Json:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _ranges(egress: tuple[str, ...]) -> list[Json]:
    return [{"ipBlock": _block(cidr)} for cidr in egress]


def _block(cidr: str) -> Json:
    """The whole internet stops short of the machines' credentials; a narrower range is what somebody wrote."""
    version = 6 if ":" in cidr else 4
    is_everything = cidr.endswith("/0")
    return {"cidr": cidr, **({"except": [_MACHINE_CREDENTIALS[version]]} if is_everything else {})}
