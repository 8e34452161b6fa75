"""Names, labels and annotations of our objects, prefixed by one domain that an installation may change."""

from collections.abc import Mapping
from typing import Any

from clusters.manifests.values import Identity

DOMAIN = "muster.internal"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "muster"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
# The StatefulSet controller's counterpart of the completion index.
ORDINAL_LABEL = "apps.kubernetes.io/pod-index"

# A pod of an Indexed Job is called name-index-random: 52 + "-99999" + "-abcde" is within the 63 of a label.
OBJECT_NAME_MAX = 52


def object_name(prefix: str, run: str, attempt: int) -> str:
    """`<prefix>-<run>-a<attempt>`: a DNS-1035 label (it is a Service's name too) of at most 52 characters.

    The prefix is cut, never run and attempt, which make the name unique. Raises ValueError when these alone
    are too long.
    """
    ending = f"-{run}-a{attempt}"
    room = OBJECT_NAME_MAX - len(ending)
    # A Service's name must begin with a letter, a Job's need not.
    start = prefix if "a" <= prefix[:1] <= "z" else f"r{prefix}"
    kept = start[:room].rstrip("-") if room > 0 else ""
    if not kept:
        raise ValueError(f"run id too long for an object name: {run}")
    return kept + ending


def label(domain: str, name: str) -> str:
    """The key of one of our labels, annotations, gates or taints: installation, run, attempt, epoch, ..."""
    return f"{domain}/{name}"


def gate(domain: str) -> str:
    """The scheduling gate that holds a pod until its whole gang has a place."""
    return label(domain, "placement")


def gate_index(pod: Mapping[str, Any], domain: str) -> int | None:
    """Where our gate stands among the pod's gates: other controllers may add theirs at creation."""
    found = [item.get("name") for item in pod.get("spec", {}).get("schedulingGates") or ()]
    return found.index(gate(domain)) if gate(domain) in found else None


def is_gated(pod: Mapping[str, Any], domain: str) -> bool:
    """Whether the pod, as read from the API server, still waits for its place."""
    return gate_index(pod, domain) is not None


def labels(identity: Identity, given: Mapping[str, str]) -> dict[str, str]:
    """The given labels and ours, ours winning."""
    return {
        **given,
        MANAGED_BY_LABEL: MANAGED_BY,
        label(identity.domain, "installation"): identity.installation,
        label(identity.domain, "run"): identity.run,
        label(identity.domain, "attempt"): str(identity.attempt),
        label(identity.domain, "epoch"): str(identity.epoch),
        label(identity.domain, "tenant"): identity.tenant,
    }


def run_labels(identity: Identity) -> dict[str, str]:
    """The labels that tell whose object it is among all that one schedule made."""
    return {
        label(identity.domain, "run"): identity.run,
        label(identity.domain, "attempt"): str(identity.attempt),
        label(identity.domain, "epoch"): str(identity.epoch),
    }


def selector(identity: Identity, given: Mapping[str, str]) -> dict[str, str]:
    """What a service selects by: the run, so that two services from one template never share pods."""
    return {**given, label(identity.domain, "run"): identity.run}


def attempt_selector(identity: Identity) -> str:
    """The label query that finds all objects and pods of one attempt."""
    keys = ("installation", "run", "attempt")
    values = (identity.installation, identity.run, str(identity.attempt))
    return ",".join(f"{label(identity.domain, key)}={value}" for key, value in zip(keys, values, strict=True))


def rank_of(pod: Mapping[str, Any], domain: str) -> int | None:
    """The rank of a pod as read from the API server: its controller's number, or ours; None for a replica."""
    return rank_among(pod["metadata"].get("labels") or {}, domain)


def rank_among(carried: Mapping[str, str], domain: str) -> int | None:
    """The rank that the labels of a pod tell."""
    for key in (INDEX_LABEL, ORDINAL_LABEL, label(domain, "rank")):
        number = _number(carried.get(key))
        if number is not None:
            return number + (_number(carried.get(label(domain, "first-rank"))) or 0)
    return None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None


def rank_host(name: str, rank: int) -> str:
    """The host name of a rank inside its namespace, which the headless Service of the same name resolves."""
    return f"{name}-{rank}.{name}"
