"""What a pod or an object of ours says about itself, as plain values. Pure.

Documents come from API servers of any age, so nothing but `metadata` is taken for granted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusters.manifests import names, patches
from clusters.watch.usage import requests_of

Json = Mapping[str, Any]

# Every container waits with one of these before it starts: progress, not trouble.
_PROGRESS = frozenset({"", "ContainerCreating", "PodInitializing"})
_TERMINAL = frozenset({"Succeeded", "Failed"})
_MAX_REASON = 80
_MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod of ours; the fields are those of ObservedPod."""

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
    status: Json
    warning: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something is not further, in the cluster's own words."""

    reason: str = ""
    message: str = ""


def pod_view(pod: Json, *, domain: str, gpu_resources: Iterable[str]) -> PodView:
    """Read a pod that carries our labels under `domain`; `gpu_resources` names what counts as a GPU."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    gates = [str(gate.get("name")) for gate in spec.get("schedulingGates") or []]
    ours = names.gate(domain)
    phase = str(status.get("phase") or "Pending")[:12]
    requests = requests_of(spec)
    trouble = pod_trouble(status)
    return PodView(
        uid=metadata["uid"],
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        run=labels.get(names.label(domain, "run")) or "",
        attempt=_integer(labels.get(names.label(domain, "attempt"))) or 0,
        rank=names.rank_of(pod, domain),
        node_name=spec.get("nodeName") or "",
        pinned_node=patches.pinned_node({"spec": spec}) or "",
        phase=phase,
        is_gated=ours in gates,
        foreign_gates=[gate for gate in gates if gate != ours],
        is_scheduled=bool(spec.get("nodeName")),
        is_ready=(condition(status, "Ready") or {}).get("status") == "True",
        is_deleting=bool(metadata.get("deletionTimestamp")),
        gpus=sum(requests.get(name, 0) for name in gpu_resources),
        ip=status.get("podIP") or "",
        restarts=sum(int(each.get("restartCount") or 0) for each in _containers(status)),
        reason=_text(trouble.reason, _MAX_REASON),
        message=_text(trouble.message, _MAX_MESSAGE),
        exit_code=exit_code(status),
        init_message=_text(_init_message(status), _MAX_MESSAGE),
        disruption=_text(_disruption(status), _MAX_REASON),
        checkpoint_at=moment(annotations.get(names.label(domain, "checkpoint"))),
        created_at=moment(metadata.get("creationTimestamp")),
        started_at=_started_at(status),
        finished_at=_finished_at(status) if phase in _TERMINAL else None,
        resource_version=metadata.get("resourceVersion") or "",
    )


def object_view(kind: str, body: Json, *, domain: str) -> ObjectView:
    """Read a Job, StatefulSet or Deployment that carries our labels under `domain`."""
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    labels = metadata.get("labels") or {}
    failure = condition(status, "ReplicaFailure") or {}
    return ObjectView(
        kind=kind,
        uid=metadata["uid"],
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        run=labels.get(names.label(domain, "run")) or "",
        attempt=_integer(labels.get(names.label(domain, "attempt"))) or 0,
        is_suspended=bool(spec.get("suspend")),
        is_deleting=bool(metadata.get("deletionTimestamp")),
        status=status,
        # A Deployment tells in its status what a Job tells in events alone.
        warning=_text(failure.get("message"), _MAX_MESSAGE) if failure.get("status") == "True" else "",
        resource_version=metadata.get("resourceVersion") or "",
    )


def pod_trouble(status: Json) -> Trouble:
    """Return the first that applies: an ended pod's reason, a waiting container, the scheduler's word, the pod's own.

    Reasons of init containers carry the prefix "Init:", as kubectl shows them.
    """
    if status.get("phase") == "Succeeded":
        return Trouble()
    if status.get("phase") == "Failed":
        return _end_of(status)
    for trouble in _waiting(status):
        return trouble
    scheduled = condition(status, "PodScheduled") or {}
    if scheduled.get("status") == "False" and scheduled.get("reason") != "SchedulingGated":
        return Trouble(scheduled.get("reason") or "", scheduled.get("message") or "")
    return Trouble(status.get("reason") or "", status.get("message") or "")


def exit_code(status: Json) -> int | None:
    """Return the exit code of the container that ended worst; in a crash loop, of its last try."""
    codes = [int(ended.get("exitCode") or 0) for _name, ended in _ended(status)]
    if not codes:
        codes = [
            int(last.get("exitCode") or 0)
            for each in _containers(status)
            if _state(each, "waiting") and (last := (each.get("lastState") or {}).get("terminated"))
        ]
    return next((code for code in codes if code), codes[0] if codes else None)


def last_end(status: Json) -> tuple[str, int | None, str]:
    """Return reason, exit code and message of the newest end of a container, also of one that runs again."""
    ends = [
        ended
        for each in _containers(status)
        for ended in (_state(each, "terminated"), (each.get("lastState") or {}).get("terminated"))
        if ended
    ]
    newest = max(ends, key=lambda ended: str(ended.get("finishedAt") or ""), default={})
    code = newest.get("exitCode")
    return (
        _text(newest.get("reason"), _MAX_REASON),
        code if isinstance(code, int) else None,
        _text(newest.get("message"), _MAX_MESSAGE),
    )


def warning_of(event: Json) -> tuple[str, Trouble] | None:
    """Return what a Warning event is about (a uid) and what it says; None for other events."""
    uid = (event.get("involvedObject") or {}).get("uid")
    if event.get("type") != "Warning" or not uid:
        return None
    reason, message = _text(event.get("reason"), _MAX_REASON), _text(event.get("message"), _MAX_MESSAGE)
    return str(uid), Trouble(reason, message)


def condition(status: Json, kind: str) -> Json | None:
    """Return the condition of that type."""
    return next((each for each in status.get("conditions") or [] if each.get("type") == kind), None)


def moment(text: object) -> datetime | None:
    """Read an RFC 3339 time; None for anything else, or without a zone."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def _end_of(status: Json) -> Trouble:
    if status.get("reason"):  # the kubelet's or the node controller's: Evicted, OutOfcpu, NodeLost
        return Trouble(status["reason"], status.get("message") or "")
    for prefix, ended in _ended(status):
        if ended.get("exitCode") or ended.get("reason") not in ("Completed", None):
            return Trouble(prefix + (ended.get("reason") or "Error"), ended.get("message") or "")
    return Trouble("", status.get("message") or "")


def _waiting(status: Json) -> Iterator[Trouble]:
    for prefix, each in _named(status):
        waiting = _state(each, "waiting") or {}
        if (waiting.get("reason") or "") not in _PROGRESS:
            yield Trouble(prefix + waiting["reason"], waiting.get("message") or "")


def _ended(status: Json) -> Iterator[tuple[str, Json]]:
    """Yield the ended containers: failed init containers, then the main ones."""
    for prefix, each in _named(status):
        ended = _state(each, "terminated")
        if ended and (not prefix or ended.get("exitCode")):
            yield prefix, ended


def _named(status: Json) -> Iterator[tuple[str, Json]]:
    for each in status.get("initContainerStatuses") or []:
        yield "Init:", each
    for each in status.get("containerStatuses") or []:
        yield "", each


def _containers(status: Json) -> Sequence[Json]:
    return [each for _prefix, each in _named(status)]


def _state(container: Json, kind: str) -> Json | None:
    return (container.get("state") or {}).get(kind)


def _init_message(status: Json) -> str:
    ended = [_state(each, "terminated") or {} for each in status.get("initContainerStatuses") or []]
    return next((str(each["message"]) for each in reversed(ended) if each.get("message")), "")


def _disruption(status: Json) -> str:
    target = condition(status, "DisruptionTarget") or {}
    return str(target.get("reason") or "DisruptionTarget") if target.get("status") == "True" else ""


def _started_at(status: Json) -> datetime | None:
    times = [
        moment((_state(each, kind) or {}).get("startedAt"))
        for each in status.get("containerStatuses") or []
        for kind in ("running", "terminated")
    ]
    return min((time for time in times if time), default=None)


def _finished_at(status: Json) -> datetime | None:
    times = [moment(ended.get("finishedAt")) for _prefix, ended in _ended(status)]
    return max((time for time in times if time), default=None)


def _text(text: object, limit: int) -> str:
    # Programs write what they like into termination messages; the database takes no NUL.
    return str(text or "").replace("\x00", "")[:limit]


def _integer(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
