"""Log lines of containers: made on demand from the pod's identity and the time, the same at every reading."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from clusters.simulated.clock import parse_stamp, rfc3339_fine
from clusters.simulated.containers import find_status, rank_of, running_since
from clusters.simulated.devices import pod_gpus
from clusters.simulated.errors import ApiError, bad_request
from clusters.simulated.resources import PODS, Obj
from clusters.simulated.world import World

_LINE_S = 2.0
# A kubelet rotates logs away; so do we.
_KEPT_LINES = 5000
_FOLLOW_S = 0.5


@dataclass(frozen=True, slots=True)
class LogRequest:
    """`tail` None means all lines, `limit_bytes` and `since_s` 0 no limit. `since_s` is real time."""

    container: str = ""
    tail: int | None = None
    limit_bytes: int = 0
    since_s: int = 0
    timestamps: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    moment: float
    text: str

    def shown(self, *, timestamps: bool) -> bytes:
        return (f"{rfc3339_fine(self.moment)} {self.text}\n" if timestamps else f"{self.text}\n").encode()


def read_log(world: World, pod: Obj, wanted: LogRequest) -> bytes:
    """The log so far. Raises what the real server answers for containers that are unknown or not started."""
    lines = _lines(world, pod, _container(pod, wanted.container))
    if wanted.since_s:
        oldest = world.clock.now() - wanted.since_s
        lines = [line for line in lines if line.moment >= oldest]
    if wanted.tail is not None:
        lines = lines[-wanted.tail :] if wanted.tail else []
    text = b"".join(line.shown(timestamps=wanted.timestamps) for line in lines)
    return text[: wanted.limit_bytes] if wanted.limit_bytes else text


async def follow_log(world: World, pod: Obj, wanted: LogRequest) -> AsyncIterator[bytes]:
    """The log so far, then new lines until the container ends or the pod goes."""
    chosen = _container(pod, wanted.container)
    meta = pod["metadata"]
    first = read_log(world, pod, wanted)
    seen = world.clock.now()
    yield first
    while True:
        await asyncio.sleep(_FOLLOW_S)
        newest = world.store.get(PODS, meta["namespace"], meta["name"])
        if newest is None or newest["metadata"]["uid"] != meta["uid"]:
            return
        until = world.clock.now()
        fresh = [line for line in _lines(world, newest, chosen) if seen < line.moment <= until]
        seen = until
        if fresh:
            yield b"".join(line.shown(timestamps=wanted.timestamps) for line in fresh)
        status = find_status(newest, chosen["name"])
        if status is None or "terminated" in status["state"]:
            return


def _container(pod: Obj, name: str) -> Obj:
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    listed = spec["containers"] + (spec.get("initContainers") or [])
    if not name and len(spec["containers"]) > 1:
        names = " ".join(each["name"] for each in spec["containers"])
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{names}]")
    found: Obj | None = next((each for each in listed if not name or each["name"] == name), None)
    if found is None:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    return found


def _lines(world: World, pod: Obj, container: Obj) -> list[_Line]:
    """Lines of the present or last run of a container, oldest first."""
    node = pod["spec"].get("nodeName")
    if not node:
        return []
    if node in world.down_nodes:
        text = f'Get "https://{pod["status"].get("hostIP", node)}:10250/containerLogs": dial tcp: i/o timeout'
        raise ApiError(500, "InternalError", text)
    span = _span(world, pod, container)
    opening = _opening(pod, container)
    count = int(world.clock.simulated(span[1] - span[0]) / _LINE_S)
    lines = [_Line(span[0] + world.clock.real(0.1 * place), text) for place, text in enumerate(opening)]
    lines = [line for line in lines if line.moment <= span[1]]
    for step in range(max(1, count - _KEPT_LINES), count + 1):
        moment = span[0] + world.clock.real(step * _LINE_S)
        lines.append(_Line(moment, _body_line(pod, container, step)))
    state = (find_status(pod, container["name"]) or {"state": {}})["state"]
    ending = _ending(state.get("terminated"))
    return lines + [_Line(span[1], text) for text in ending]


def _span(world: World, pod: Obj, container: Obj) -> tuple[float, float]:
    status = find_status(pod, container["name"])
    state = (status or {}).get("state") or {}
    since = running_since(world.started, pod, container["name"])
    if since is not None:
        return since, world.clock.now()
    ended = state.get("terminated") or ((status or {}).get("lastState") or {}).get("terminated")
    if ended:
        place = (pod["metadata"]["uid"], container["name"])
        start = world.started.get(place) or parse_stamp(ended["startedAt"])
        return start, world.ended.get(place) or max(start, parse_stamp(ended["finishedAt"]))
    reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
    name, pod_name = container["name"], pod["metadata"]["name"]
    raise bad_request(f'container "{name}" in pod "{pod_name}" is waiting to start: {reason}')


def _opening(pod: Obj, container: Obj) -> list[str]:
    gpus = pod_gpus(pod)
    lines = [f"[{container['name']}] starting {container['image']}"]
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    if command:
        lines.append(f"[{container['name']}] exec {' '.join(map(str, command))[:400]}")
    if gpus:
        lines.append(f"[{container['name']}] found {gpus} CUDA device(s), rank {rank_of(pod)}")
    return lines


def _body_line(pod: Obj, container: Obj, step: int) -> str:
    uid, rank = pod["metadata"]["uid"], rank_of(pod)
    chance = _chance(f"{uid}/{container['name']}/{step}")
    if pod["spec"]["restartPolicy"] == "Always":
        took, tokens = 18 + 60 * chance, int(64 + 400 * chance)
        return f"INFO POST /v1/predict 200 {took:.1f}ms tokens={tokens} queue={int(chance * 5)}"
    loss = 1.6 + 7.5 / (1 + step / 12) + 0.12 * (chance - 0.5)
    speed = max(1, pod_gpus(pod)) * (3150 + 240 * chance)
    figures = f"loss {loss:.4f} | {speed:,.0f} tokens/s | grad-norm {0.6 + chance:.3f}"
    return f"step {step * 10} | {figures} | rank {rank}"


def _ending(state: Obj | None) -> list[str]:
    if state is None:
        return []
    if state["exitCode"] == 0:
        return ["done"]
    if state["reason"] == "OOMKilled":
        return ["Killed"]
    if state["exitCode"] == 143:
        return ["received SIGTERM, stopping"]
    return [f"RuntimeError: the training process ended with exit code {state['exitCode']}"]


def _chance(seed: str) -> float:
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=4).digest()) / 2**32
