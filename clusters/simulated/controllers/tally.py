"""The arithmetic of a Job: which pods ended how, which failures count, which indexes are done."""

from dataclasses import dataclass, field

from clusters.simulated.containers import INDEX_LABEL
from clusters.simulated.resources import Obj

FINALIZER = "batch.kubernetes.io/job-tracking"
_TERMINAL = ("Succeeded", "Failed")


@dataclass(slots=True)
class Tally:
    """What a look at a Job's pods finds. `counted` pods lose their finalizer once the status is written."""

    active: list[Obj] = field(default_factory=list)
    terminating: list[Obj] = field(default_factory=list)
    counted: list[Obj] = field(default_factory=list)
    succeeded: int = 0
    failed: int = 0
    done: set[int] = field(default_factory=set)
    fail_job: str = ""
    restarts: int = 0


def take(job: Obj, pods: list[Obj]) -> Tally:
    """Adds the pods that ended since (they still carry the finalizer) to what the status has counted."""
    spec, status = job["spec"], job.get("status") or {}
    tally = Tally(failed=status.get("failed", 0), succeeded=status.get("succeeded", 0))
    tally.done = parse_indexes(status.get("completedIndexes", ""))
    for pod in pods:
        phase = pod["status"].get("phase")
        leaving = bool(pod["metadata"].get("deletionTimestamp"))
        if phase not in _TERMINAL:
            (tally.terminating if leaving else tally.active).append(pod)
            if not leaving:
                tally.restarts += _restarts(pod)
        if FINALIZER in (pod["metadata"].get("finalizers") or ()) and _ended(spec, phase, leaving=leaving):
            _count(tally, spec, pod)
    if spec.get("completionMode") == "Indexed":
        tally.done = {index for index in tally.done if index < spec["completions"]}
        tally.succeeded = len(tally.done)
    return tally


def is_done(job: Obj, tally: Tally) -> bool:
    completions = job["spec"].get("completions")
    if completions is None:
        return tally.succeeded > 0 and not tally.active
    return tally.succeeded >= int(completions)


def index_of(pod: Obj) -> int:
    """The completion index; -1 for a pod without one."""
    label = (pod["metadata"].get("labels") or {}).get(INDEX_LABEL, "")
    return int(label) if label.isdigit() else -1


def format_indexes(indexes: set[int]) -> str:
    """`0-2,5`: runs of two are written with a comma."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(_run(part) for part in parts)


def parse_indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _run(part: list[int]) -> str:
    if len(part) > 2:
        return f"{part[0]}-{part[-1]}"
    return ",".join(map(str, part))


def _ended(spec: Obj, phase: str, *, leaving: bool) -> bool:
    return phase in _TERMINAL or (leaving and spec.get("podReplacementPolicy") != "Failed")


def _count(tally: Tally, spec: Obj, pod: Obj) -> None:
    tally.counted.append(pod)
    if pod["status"].get("phase") == "Succeeded":
        tally.succeeded += 1
        if index_of(pod) >= 0:
            tally.done.add(index_of(pod))
        return
    action, why = _judge(spec, pod)
    if action == "FailJob" and not tally.fail_job:
        tally.fail_job = why
    if action != "Ignore":
        tally.failed += 1


def _judge(spec: Obj, pod: Obj) -> tuple[str, str]:
    """The action of the first rule of the pod failure policy that fits, and the Job's message for it."""
    if pod["status"].get("phase") != "Failed":
        return "Count", ""
    meta = pod["metadata"]
    for place, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        found = _exit_code_match(rule.get("onExitCodes"), pod) or _condition_match(rule.get("onPodConditions"), pod)
        if found:
            action = str(rule["action"])
            where = f"{meta['namespace']}/{meta['name']}"
            return action, f"{found[0]} {where} {found[1]} matching {action} rule at index {place}"
    return "Count", ""


def _exit_code_match(rule: Obj | None, pod: Obj) -> tuple[str, str] | None:
    if not rule:
        return None
    status = pod["status"]
    for held in (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or []):
        code = (held["state"].get("terminated") or {}).get("exitCode", 0)
        if code == 0 or rule.get("containerName") not in (None, held["name"]):
            continue
        if (code in rule["values"]) == (rule["operator"] == "In"):
            return f"Container {held['name']} for pod", f"failed with exit code {code}"
    return None


def _condition_match(patterns: list[Obj] | None, pod: Obj) -> tuple[str, str] | None:
    for pattern in patterns or ():
        for condition in pod["status"].get("conditions") or ():
            wanted = pattern["type"], pattern.get("status") or "True"
            if (condition["type"], condition["status"]) == wanted:
                return "Pod", f"has condition {pattern['type']}"
    return None


def _restarts(pod: Obj) -> int:
    status = pod["status"]
    listed = (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or [])
    return sum(held.get("restartCount", 0) for held in listed)
