"""What a pod or an object of ours says about itself, as plain values. Pure.

Documents come from API servers of any age, so nothing but `metadata` is taken for granted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct

from clusters.manifests import names, patches
from clusters.watch.shapes import (
    Condition,
    ContainerState,
    ContainerStatus,
    Event,
    Object,
    OwnedMetadata,
    Pod,
    PodSpec,
    PodStatus,
    Stretch,
)
from clusters.watch.usage import requests_of

Json = Mapping[str, Any]
# What comes before a reason ("Init:" or nothing), and the container or its end.
Told = tuple[str, ContainerStatus]
End = tuple[str, Stretch]

_NO_SPEC, _NO_STATUS = PodSpec(), PodStatus()
_NO_CONDITION, _NO_STATE, _NO_STRETCH = Condition(), ContainerState(), Stretch()

# Every container waits with one of these before it starts: progress, not trouble.
_PROGRESS = frozenset({"", "ContainerCreating", "PodInitializing"})
_TERMINAL = frozenset({"Succeeded", "Failed"})
_MAX_REASON = 80
_MAX_MESSAGE = 500


class PodView(Struct, frozen=True):
    """One pod of ours; the fields are those of ObservedPod. A large cluster makes many: a Struct costs a fifth."""

    uid: str
    namespace: str
    name: str
    run: str
    attempt: int
    rank: int | None
    node_name: str
    pinned_node: str
    phase: str
    is_gated: bool
    foreign_gates: list[str]
    is_scheduled: bool
    is_ready: bool
    is_deleting: bool
    gpus: int
    ip: str
    restarts: int
    reason: str
    message: str
    exit_code: int | None
    init_message: str
    disruption: str
    checkpoint_at: datetime | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    resource_version: str


@dataclass(frozen=True, slots=True)
class ObjectView:
    """One Job, StatefulSet or Deployment of ours; the fields are those of ObservedObject."""

    kind: str
    uid: str
    namespace: str
    name: str
    run: str
    attempt: int
    is_suspended: bool
    is_deleting: bool
    owner_uid: str
    status: Json
    warning: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something is not further, in the cluster's own words."""

    reason: str = ""
    message: str = ""


def pod_view(pod: Pod, *, domain: str, gpu_resources: Iterable[str]) -> PodView:
    """Read a pod that carries our labels under `domain`; `gpu_resources` names what counts as a GPU."""
    metadata, spec, status = pod.metadata, pod.spec or _NO_SPEC, pod.status or _NO_STATUS
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    gates = [gate.name or "" for gate in spec.scheduling_gates or ()]
    ours = names.gate(domain)
    phase = (status.phase or "Pending")[:12]
    requests = requests_of(spec)
    containers = _containers(status)
    ended = _ended(containers)
    trouble = _trouble(status, containers, ended)
    return PodView(
        uid=metadata.uid,
        namespace=metadata.namespace or "",
        name=metadata.name,
        run=labels.get(names.label(domain, "run")) or "",
        attempt=_integer(labels.get(names.label(domain, "attempt"))) or 0,
        rank=names.rank_among(labels, domain),
        node_name=spec.node_name or "",
        pinned_node=patches.node_required(spec.affinity or {}) or "",
        phase=phase,
        is_gated=ours in gates,
        foreign_gates=[gate for gate in gates if gate != ours],
        is_scheduled=bool(spec.node_name),
        is_ready=_condition(status, "Ready").status == "True",
        is_deleting=bool(metadata.deletion_timestamp),
        gpus=sum([requests.get(name, 0) for name in gpu_resources]),
        ip=status.pod_ip or "",
        restarts=sum([each.restart_count or 0 for _prefix, each in containers]),
        reason=_text(trouble.reason, _MAX_REASON),
        message=_text(trouble.message, _MAX_MESSAGE),
        exit_code=_exit_code(containers, ended),
        init_message=_text(_init_message(status), _MAX_MESSAGE),
        disruption=_text(_disruption(status), _MAX_REASON),
        checkpoint_at=moment(annotations.get(names.label(domain, "checkpoint"))),
        created_at=moment(metadata.creation_timestamp),
        started_at=_started_at(status),
        finished_at=_finished_at(ended) if phase in _TERMINAL else None,
        resource_version=metadata.resource_version or "",
    )


def object_view(kind: str, body: Object, *, domain: str) -> ObjectView:
    """Read a Job, StatefulSet or Deployment that carries our labels under `domain`."""
    metadata, spec, status = body.metadata, body.spec, body.status or {}
    labels = metadata.labels or {}
    return ObjectView(
        kind=kind,
        uid=metadata.uid,
        namespace=metadata.namespace or "",
        name=metadata.name,
        run=labels.get(names.label(domain, "run")) or "",
        attempt=_integer(labels.get(names.label(domain, "attempt"))) or 0,
        is_suspended=bool(spec and spec.suspend),
        is_deleting=bool(metadata.deletion_timestamp),
        owner_uid=_controller_uid(metadata),
        status=status,
        warning=_text(_replica_failure(status), _MAX_MESSAGE),
        resource_version=metadata.resource_version or "",
    )


def last_end(status: PodStatus) -> tuple[str, int | None, str]:
    """Return reason, exit code and message of the newest end of a container, also of one that runs again."""
    ends = [
        state.terminated
        for _prefix, each in _containers(status)
        for state in (each.state, each.last_state)
        if state and state.terminated
    ]
    newest = max(ends, key=lambda end: end.finished_at or "", default=_NO_STRETCH)
    return _text(newest.reason, _MAX_REASON), newest.exit_code, _text(newest.message, _MAX_MESSAGE)


def warning_of(event: Event) -> tuple[str, Trouble] | None:
    """Return what a Warning event is about (a uid) and what it says; None for other events."""
    uid = event.involved_object.uid if event.involved_object else None
    if event.type != "Warning" or not uid:
        return None
    return uid, Trouble(_text(event.reason, _MAX_REASON), _text(event.message, _MAX_MESSAGE))


def moment(text: object) -> datetime | None:
    """Read an RFC 3339 time; None for anything else, or without a zone."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def _trouble(status: PodStatus, containers: Sequence[Told], ended: Sequence[End]) -> Trouble:
    """Return the first that applies: an ended pod's reason, a waiting container, the scheduler's word, the pod's own.

    Reasons of init containers carry the prefix "Init:", as kubectl shows them.
    """
    if status.phase == "Succeeded":
        return Trouble()
    if status.phase == "Failed":
        return _end_of(status, ended)
    for prefix, each in containers:
        waiting = (each.state or _NO_STATE).waiting
        if waiting and (waiting.reason or "") not in _PROGRESS:
            return Trouble(f"{prefix}{waiting.reason}", waiting.message or "")
    scheduled = _condition(status, "PodScheduled")
    if scheduled.status == "False" and scheduled.reason != "SchedulingGated":
        return Trouble(scheduled.reason or "", scheduled.message or "")
    return Trouble(status.reason or "", status.message or "")


def _end_of(status: PodStatus, ended: Sequence[End]) -> Trouble:
    if status.reason:  # the kubelet's or the node controller's: Evicted, OutOfcpu, NodeLost
        return Trouble(status.reason, status.message or "")
    for prefix, end in ended:
        if end.exit_code or end.reason not in ("Completed", None):
            return Trouble(prefix + (end.reason or "Error"), end.message or "")
    return Trouble("", status.message or "")


def _condition(status: PodStatus, kind: str) -> Condition:
    for each in status.conditions or ():
        if each.type == kind:
            return each
    return _NO_CONDITION


def _replica_failure(status: Json) -> str:
    """Return what keeps a Deployment from having its pods: it tells in its status what a Job tells in events alone."""
    for each in status.get("conditions") or ():
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True":
            return str(each.get("message") or "")
    return ""


def _containers(status: PodStatus) -> list[Told]:
    """Return all containers, those first that run first."""
    main = [("", each) for each in status.container_statuses or ()]
    early = status.init_container_statuses
    return [*(("Init:", each) for each in early), *main] if early else main


def _ended(containers: Sequence[Told]) -> list[End]:
    """Return the ended containers: failed init containers, then the main ones."""
    return [
        (prefix, each.state.terminated)
        for prefix, each in containers
        if each.state and each.state.terminated and (not prefix or each.state.terminated.exit_code)
    ]


def _exit_code(containers: Sequence[Told], ended: Sequence[End]) -> int | None:
    """Return the exit code of the container that ended worst; in a crash loop, of its last try."""
    ends = [end for _prefix, end in ended] or [
        each.last_state.terminated
        for _prefix, each in containers
        if each.last_state and each.last_state.terminated and each.state and each.state.waiting
    ]
    codes = [end.exit_code or 0 for end in ends]
    return next(filter(None, codes), codes[0] if codes else None)


def _init_message(status: PodStatus) -> str:
    ends = [each.state.terminated for each in status.init_container_statuses or () if each.state]
    return next((end.message for end in reversed(ends) if end and end.message), "")


def _disruption(status: PodStatus) -> str:
    target = _condition(status, "DisruptionTarget")
    return target.reason or "DisruptionTarget" if target.status == "True" else ""


def _started_at(status: PodStatus) -> datetime | None:
    begun = [each.state.running or each.state.terminated for each in status.container_statuses or () if each.state]
    return min([time for each in begun if each and (time := moment(each.started_at))], default=None)


def _finished_at(ended: Sequence[End]) -> datetime | None:
    return max([time for _prefix, end in ended if (time := moment(end.finished_at))], default=None)


def _controller_uid(metadata: OwnedMetadata) -> str:
    return next((owner.uid or "" for owner in metadata.owner_references or () if owner.controller), "")


def _text(text: object, limit: int) -> str:
    # Programs write what they like into termination messages; the database takes no NUL.
    return str(text or "").replace("\x00", "")[:limit]


def _integer(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
