"""What a container is told by its `SIM_*` variables, and how its status in the pod reads."""

import hashlib
from dataclasses import dataclass

from clusters.simulated.clock import parse_stamp
from clusters.simulated.resources import Obj

_CHECKOUT_S = 0.5
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
ORDINAL_LABEL = "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds are simulated; `run_s` None means for ever."""

    run_s: float | None
    exit_code: int
    out_of_memory: bool
    pull_fails: bool
    stop_s: float
    stop_exit_code: int
    message: str
    checkpoint_s: float
    checkpoint_annotation: str


def settings_of(pod: Obj, container: Obj, default_run_s: float) -> Settings:
    """Reads only the container's own environment, the way a program in it would."""
    env = {each.get("name", ""): str(each.get("value", "")) for each in container.get("env") or ()}
    endless = pod["spec"]["restartPolicy"] == "Always"
    tag = str(container["image"]).rpartition("/")[2].partition(":")[2]
    pull_fails = env.get("SIM_IMAGE_PULL_FAIL") == "1" or tag == "does-not-exist"
    if "CODE_URL" in env:
        return _checkout(env, pull_fails=pull_fails)
    run_s = _number(env.get("SIM_RUN_S"), None if endless else default_run_s)
    run_s = _value_of_rank(env.get("SIM_RUN_S_RANK", ""), rank_of(pod), run_s)
    out_of_memory = env.get("SIM_OOM") == "1"
    code = int(_number(env.get("SIM_EXIT_CODE"), 137 if out_of_memory else 0) or 0)
    return Settings(
        run_s=run_s,
        exit_code=int(_value_of_rank(env.get("SIM_EXIT_CODE_RANK", ""), rank_of(pod), code) or 0),
        out_of_memory=out_of_memory,
        pull_fails=pull_fails,
        stop_s=_number(env.get("SIM_STOP_S"), 0.2) or 0.0,
        stop_exit_code=int(_number(env.get("SIM_STOP_EXIT_CODE"), 143) or 0),
        message=env.get("SIM_TERMINATION_MESSAGE", ""),
        checkpoint_s=_number(env.get("SIM_CHECKPOINT_EVERY_S"), 0.0) or 0.0,
        checkpoint_annotation=env.get("SIM_CHECKPOINT_ANNOTATION", ""),
    )


def rank_of(pod: Obj) -> int:
    labels = pod["metadata"].get("labels") or {}
    label = labels.get(INDEX_LABEL) or labels.get(ORDINAL_LABEL) or "0"
    return int(label) if label.isdigit() else 0


def waiting(container: Obj, reason: str, message: str = "") -> Obj:
    state = {"reason": reason, "message": message} if message else {"reason": reason}
    return _status(container, {"waiting": state})


def running(container: Obj, now: str, pod_uid: str) -> Obj:
    identity = hashlib.sha256(f"{pod_uid}/{container['name']}".encode()).hexdigest()
    image = hashlib.sha256(container["image"].encode()).hexdigest()
    return {
        **_status(container, {"running": {"startedAt": now}}),
        "started": True,
        "containerID": f"containerd://{identity}",
        "imageID": f"{container['image'].partition('@')[0]}@sha256:{image}",
    }


def terminated(started: str | None, now: str, code: int, reason: str = "", message: str = "") -> Obj:
    state = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": started or now,
        "finishedAt": now,
    }
    return {"terminated": {**state, "message": message} if message else state}


def find_status(pod: Obj, name: str) -> Obj | None:
    """The status of a container or init container."""
    status = pod["status"]
    for field in ("containerStatuses", "initContainerStatuses"):
        for held in status.get(field) or ():
            if held["name"] == name:
                found: Obj = held
                return found
    return None


def set_status(pod: Obj, name: str, status: Obj) -> None:
    for field in ("containerStatuses", "initContainerStatuses"):
        listed = pod["status"].get(field) or []
        for place, held in enumerate(listed):
            if held["name"] == name:
                listed[place] = {**held, **status}


def settle(pod: Obj, now: str) -> None:
    """Phase and conditions that follow from the containers' statuses."""
    status, spec = pod["status"], pod["spec"]
    inits, mains = status.get("initContainerStatuses") or [], status.get("containerStatuses") or []
    initialized = all((each["state"].get("terminated") or {}).get("exitCode") == 0 for each in inits)
    status["phase"] = _phase(spec["restartPolicy"], inits, mains)
    done = status["phase"] in ("Succeeded", "Failed")
    for each in mains:
        each["ready"] = bool(each.get("ready")) and "running" in each["state"]
    ready = bool(mains) and all(each["ready"] for each in mains)
    why = ("PodCompleted" if status["phase"] == "Succeeded" else "PodFailed") if done else "ContainersNotReady"
    names = [each["name"] for each in mains if not each["ready"]]
    message = "" if done else f"containers with unready status: [{' '.join(names)}]"
    set_condition(pod, ("PodReadyToStartContainers", not done), now)
    set_condition(pod, ("Initialized", initialized), now, "" if initialized else "ContainersNotInitialized")
    for kind in ("ContainersReady", "Ready"):
        set_condition(pod, (kind, ready), now, "" if ready else why, "" if ready else message)


def set_condition(pod: Obj, state: tuple[str, bool], now: str, reason: str = "", message: str = "") -> None:
    """`state` is the condition's type and value. The transition time moves only with the value."""
    kind, value = state
    conditions = pod["status"].setdefault("conditions", [])
    held = next((each for each in conditions if each["type"] == kind), None)
    word = "True" if value else "False"
    since = held["lastTransitionTime"] if held and held["status"] == word and "lastTransitionTime" in held else now
    fresh = {"type": kind, "status": word, "lastTransitionTime": since}
    if reason:
        fresh["reason"] = reason
    if message:
        fresh["message"] = message
    if held is None:
        conditions.append(fresh)
    else:
        conditions[conditions.index(held)] = fresh


def running_since(started: dict[tuple[str, str], float], pod: Obj, name: str) -> float | None:
    """When a running container started: exactly if `started` knows it, else by its status, in whole seconds."""
    state = (find_status(pod, name) or {"state": {}})["state"].get("running")
    if not state:
        return None
    return started.get((pod["metadata"]["uid"], name)) or parse_stamp(state["startedAt"])


def _phase(policy: str, inits: list[Obj], mains: list[Obj]) -> str:
    codes = [(each["state"].get("terminated") or {}).get("exitCode") for each in inits]
    if any(code not in (None, 0) for code in codes) and policy == "Never":
        return "Failed"
    ends = [(each["state"].get("terminated") or {}).get("exitCode") for each in mains]
    if ends and all(code is not None for code in ends) and policy != "Always":
        if all(code == 0 for code in ends):
            return "Succeeded"
        if policy == "Never":
            return "Failed"
    started = all("waiting" not in each["state"] or each.get("restartCount") for each in mains)
    return "Running" if started and mains else "Pending"


def _status(container: Obj, state: Obj) -> Obj:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "started": False,
        "state": state,
    }


def _value_of_rank(text: str, rank: int, default: float | None) -> float | None:
    """From `rank:value` pairs separated by commas."""
    for pair in text.split(","):
        wanted, colon, value = pair.partition(":")
        if colon and wanted.strip() == str(rank):
            return _number(value, default)
    return default


def _checkout(env: dict[str, str], *, pull_fails: bool) -> Settings:
    """A git checkout: it reports a made-up commit, or fails for the reference `does-not-exist`."""
    url, ref = env["CODE_URL"], env.get("CODE_REF", "")
    commit = hashlib.sha1(f"{url} {ref}".encode(), usedforsecurity=False).hexdigest()
    found = ref != "does-not-exist"
    return Settings(
        run_s=_CHECKOUT_S,
        exit_code=0 if found else 128,
        out_of_memory=False,
        pull_fails=pull_fails,
        stop_s=0.0,
        stop_exit_code=143,
        message=f"{commit} (simulated)" if found else f"fatal: couldn't find remote ref {ref}",
        checkpoint_s=0.0,
        checkpoint_annotation="",
    )


def _number(text: str | None, default: float | None) -> float | None:
    try:
        return float(text) if text else default
    except ValueError:
        return default
