"""The kubelets of all nodes: start containers, end them, report pod status, delete what must go."""

from dataclasses import dataclass

from clusters.simulated import containers
from clusters.simulated.api import Deletion
from clusters.simulated.clock import rfc3339_fine
from clusters.simulated.containers import Settings, find_status, set_status, settings_of, settle
from clusters.simulated.devices import pod_gpus
from clusters.simulated.mounts import mount_problem
from clusters.simulated.quantities import amounts, pod_requests, show
from clusters.simulated.resources import NODES, PODS, Obj
from clusters.simulated.store import Change, Key
from clusters.simulated.timers import Due, Timers
from clusters.simulated.workqueue import WorkQueue
from clusters.simulated.world import World

_TERMINAL = ("Succeeded", "Failed")
_CACHED_PULL_S = 0.05
_INIT_S = 0.5
_MOUNT_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """Simulated seconds."""

    default_run_s: float = 600.0
    pull_s: float = 0.5


class Kubelets:
    """While a node is down its kubelet is silent: timers that run out are held until it comes back."""

    def __init__(self, world: World, options: KubeletOptions) -> None:
        self._world = world
        self._options = options
        self.timers = Timers(world.clock, self._fire)
        self._queue = WorkQueue(self._sync)
        self._images: set[tuple[str, str]] = set()
        self._held: dict[str, list[Due]] = {}
        world.store.subscribe(self._on_change)

    def resume(self) -> None:
        """Looks at every pod after a start from saved state."""
        for stored in self._world.store.all(PODS):
            self._queue.add(stored.key)

    def node_returned(self, node: str) -> None:
        for due in self._held.pop(node, []):
            self._fire(due)
        for pod in self._world.store.pods_on(node):
            self._queue.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _on_change(self, change: Change) -> None:
        if change.resource is not PODS or not change.object["spec"].get("nodeName"):
            return
        if change.type == "DELETED":
            self._forget(change.object["metadata"]["uid"])
            for container in change.object["spec"]["containers"]:
                self._world.started.pop((change.object["metadata"]["uid"], container["name"]), None)
                self._world.ended.pop((change.object["metadata"]["uid"], container["name"]), None)
        elif _needs_work(change):
            self._queue.add(change.stored.key)

    def _sync(self, key: Key) -> None:
        pod = self._world.store.get(PODS, *key)
        node = pod["spec"].get("nodeName") if pod else None
        if pod is None or not node or node in self._world.down_nodes:
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._stop(pod)
        elif pod["status"].get("phase") in _TERMINAL:
            self._forget(pod["metadata"]["uid"])
        elif pod["status"].get("containerStatuses"):
            self._rearm(pod)
        else:
            self._admit(pod, node)

    def _admit(self, pod: Obj, node: str) -> None:
        holder = self._world.store.get(NODES, "", node)
        if holder is None:
            return
        short = self._shortage(pod, holder)
        if short:
            self._reject(pod, short)
            return
        problem = mount_problem(self._world.store, pod)
        if problem:
            self._world.recorder.warn(PODS, pod, problem[0], problem[1], "kubelet")
            self._arm(pod, "", "mount", _MOUNT_RETRY_S)
        else:
            self._world.devices.allocate(node, pod, pod_gpus(pod))
        self._world.api.change(PODS, pod, lambda edited: self._fill_status(edited, holder))
        if deadline_s := pod["spec"].get("activeDeadlineSeconds"):
            self._arm(pod, "", "deadline", float(deadline_s))
        if not problem:
            self._start_next(pod)

    def _fill_status(self, pod: Obj, node: Obj) -> None:
        spec, status, now = pod["spec"], pod["status"], self._world.clock.stamp()
        addresses = (node.get("status") or {}).get("addresses") or []
        status["hostIP"] = next((each["address"] for each in addresses if each["type"] == "InternalIP"), "")
        status["hostIPs"] = [{"ip": status["hostIP"]}]
        status["startTime"] = now
        reason = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        status["containerStatuses"] = [
            {**containers.waiting(each, reason), "restartCount": 0, "lastState": {}} for each in spec["containers"]
        ]
        if spec.get("initContainers"):
            status["initContainerStatuses"] = [
                {**containers.waiting(each, "PodInitializing"), "restartCount": 0, "lastState": {}}
                for each in spec["initContainers"]
            ]
        containers.set_condition(pod, ("PodScheduled", True), now)
        settle(pod, now)

    def _shortage(self, pod: Obj, node: Obj) -> str:
        """The reason and text of a kubelet that refuses a pod which was bound past the scheduler's checks."""
        offered = amounts((node.get("status") or {}).get("allocatable"))
        used = self._world.usage.by_node.get(node["metadata"]["name"], {})
        for name, wanted in pod_requests(pod["spec"]).items():
            if wanted and used.get(name, 0) > offered.get(name, 0):
                others = used[name] - wanted
                return (
                    f"OutOf{name}/Pod was rejected: Node didn't have enough resource: {name}, "
                    f"requested: {show(wanted)}, used: {show(others)}, capacity: {show(offered.get(name, 0))}"
                )
        return ""

    def _reject(self, pod: Obj, short: str) -> None:
        reason, _, message = short.partition("/Pod")
        now = self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            edited["status"].update(phase="Failed", reason=reason, message=f"Pod{message}", startTime=now)

        self._world.recorder.warn(PODS, pod, reason, f"Pod{message}", "kubelet")
        self._world.api.change(PODS, pod, edit)

    def _start_next(self, pod: Obj) -> None:
        """The first init container that has not succeeded, else all main containers."""
        for container in pod["spec"].get("initContainers") or ():
            status = find_status(self._newest(pod), container["name"])
            if status is None or (status["state"].get("terminated") or {}).get("exitCode") != 0:
                self._pull(pod, container)
                return
        for container in pod["spec"]["containers"]:
            self._pull(pod, container)

    def _pull(self, pod: Obj, container: Obj) -> None:
        image = (pod["spec"]["nodeName"], container["image"])
        cached = image in self._images and not self._settings(pod, container).pull_fails
        if not cached:
            self._say(pod, "Pulling", f'Pulling image "{container["image"]}"')
        self._arm(pod, container["name"], "pulled", _CACHED_PULL_S if cached else self._options.pull_s)

    def _pulled(self, pod: Obj, container: Obj) -> None:
        image, name = container["image"], container["name"]
        if self._settings(pod, container).pull_fails:
            text = (
                f'Failed to pull image "{image}": rpc error: code = NotFound desc = failed to pull and '
                f'unpack image "{image}": failed to resolve reference "{image}": not found'
            )
            self._world.recorder.warn(PODS, pod, "Failed", text, "kubelet")
            self._world.recorder.warn(PODS, pod, "Failed", "Error: ErrImagePull", "kubelet")
            self._wait(pod, container, "ErrImagePull", text)
            self._arm(pod, name, "pull-back-off", 1.0)
            return
        self._images.add((pod["spec"]["nodeName"], image))
        for reason, text in (
            ("Pulled", f'Container image "{image}" already present on machine'),
            ("Created", f"Container created: {name}"),
            ("Started", f"Container started: {name}"),
        ):
            self._say(pod, reason, text)
        self._run(pod, container)

    def _back_off_pull(self, pod: Obj, container: Obj) -> None:
        text = f'Back-off pulling image "{container["image"]}"'
        self._say(pod, "BackOff", text)
        self._wait(pod, container, "ImagePullBackOff", text)

    def _run(self, pod: Obj, container: Obj) -> None:
        now = self._world.clock.stamp()
        probe = container.get("readinessProbe") or container.get("startupProbe")
        ready = not probe or not probe.get("initialDelaySeconds")

        def edit(edited: Obj) -> None:
            fresh = containers.running(container, now, edited["metadata"]["uid"])
            set_status(edited, container["name"], {**fresh, "ready": ready})
            edited["status"].setdefault("podIP", _pod_address(edited["metadata"]["uid"]))
            edited["status"]["podIPs"] = [{"ip": edited["status"]["podIP"]}]
            settle(edited, now)

        self._world.started[(pod["metadata"]["uid"], container["name"])] = self._world.clock.now()
        self._rearm(self._world.api.change(PODS, pod, edit))

    def _rearm(self, pod: Obj) -> None:
        """Arms what must follow for each container and is not armed: also after a restart of the cluster."""
        inits = {each["name"] for each in pod["spec"].get("initContainers") or ()}
        for container in (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]:
            status, name = find_status(pod, container["name"]), container["name"]
            since = containers.running_since(self._world.started, pod, name)
            if since is None or status is None:
                continue
            ran = self._world.clock.simulated(self._world.clock.now() - since)
            settings = self._settings(pod, container)
            run_s = settings.run_s
            if name in inits:
                run_s = _INIT_S if "SIM_RUN_S" not in _env_names(container) else settings.run_s
            if run_s is not None:
                self._arm_once(pod, name, "exit", run_s - ran)
            self._rearm_probe(pod, container, status, ran)
            if settings.checkpoint_s and settings.checkpoint_annotation:
                self._arm_once(pod, name, "checkpoint", settings.checkpoint_s)

    def _rearm_probe(self, pod: Obj, container: Obj, status: Obj, ran: float) -> None:
        probe = container.get("readinessProbe") or container.get("startupProbe") or {}
        if not status.get("ready") and probe.get("initialDelaySeconds"):
            self._arm_once(pod, container["name"], "ready", probe["initialDelaySeconds"] - ran)

    def _become_ready(self, pod: Obj, container: Obj) -> None:
        now = self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            set_status(edited, container["name"], {"ready": True})
            settle(edited, now)

        self._world.api.change(PODS, pod, edit)

    def _exit(self, pod: Obj, container: Obj) -> None:
        settings = self._settings(pod, container)
        name, policy = container["name"], pod["spec"]["restartPolicy"]
        is_init = any(each["name"] == name for each in pod["spec"].get("initContainers") or ())
        again = settings.exit_code != 0 and policy != "Never"
        again = again or (policy == "Always" and not is_init)
        reason = "OOMKilled" if settings.out_of_memory and settings.exit_code == 137 else ""
        delay = self._end_container(pod, container, settings, reason, again=again)
        if again:
            self._arm(pod, name, "restart", delay)
        elif is_init and settings.exit_code == 0:
            self._start_next(pod)
        self._queue.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _end_container(self, pod: Obj, container: Obj, settings: Settings, reason: str, *, again: bool) -> float:
        """Writes the end of a container; answers the back-off in simulated seconds before it starts again."""
        now, name = self._world.clock.stamp(), container["name"]
        self._world.ended[(pod["metadata"]["uid"], name)] = self._world.clock.now()
        held = find_status(self._newest(pod), name) or {}
        restarts = held.get("restartCount", 0)
        delay = 0.0 if restarts == 0 else min(300.0, 10.0 * 2 ** (restarts - 1))
        started = (held.get("state", {}).get("running") or {}).get("startedAt")
        end = containers.terminated(started, now, settings.exit_code, reason, settings.message)
        due_name = pod["metadata"]["name"]

        def edit(edited: Obj) -> None:
            if again:
                text = f"back-off {delay:.0f}s restarting failed container={name} pod={due_name}"
                state = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
                change = {"state": state, "lastState": end, "restartCount": restarts + 1}
            else:
                change = {"state": end}
            set_status(edited, name, {**change, "ready": False, "started": False})
            settle(edited, now)

        if again and delay:
            text = f"Back-off restarting failed container {name} in pod {pod['metadata']['name']}"
            self._world.recorder.warn(PODS, pod, "BackOff", text, "kubelet")
        self._world.api.change(PODS, pod, edit)
        return delay

    def _mark_checkpoint(self, pod: Obj, container: Obj) -> None:
        settings = self._settings(pod, container)

        def edit(edited: Obj) -> None:
            notes = edited["metadata"].setdefault("annotations", {})
            notes[settings.checkpoint_annotation] = rfc3339_fine(self._world.clock.now())

        self._world.api.change(PODS, pod, edit)
        self._arm(pod, container["name"], "checkpoint", settings.checkpoint_s)

    def _stop(self, pod: Obj) -> None:
        """SIGTERM, then the object goes after the grace period or as soon as the containers have ended."""
        meta = pod["metadata"]
        due = Due((meta["namespace"], meta["name"]), meta["uid"], "", "killed")
        grace = float(meta.get("deletionGracePeriodSeconds", 0))
        if self.timers.has(due) or (grace == 0 and pod["status"].get("phase") in _TERMINAL):
            return  # deleted without grace a pod is still there while a finalizer holds it
        self.timers.cancel(meta["uid"])
        for container in pod["spec"]["containers"]:
            self._say(pod, "Killing", f"Stopping container {container['name']}")
        wanted = max(self._settings(pod, each).stop_s for each in pod["spec"]["containers"])
        self.timers.arm(due, min(grace, wanted))

    def _killed(self, pod: Obj) -> None:
        meta, now = pod["metadata"], self._world.clock.stamp()

        def edit(edited: Obj) -> None:
            for container in (edited["spec"].get("initContainers") or []) + edited["spec"]["containers"]:
                self._kill_status(edited, container, now)
            codes = [each["state"]["terminated"]["exitCode"] for each in edited["status"]["containerStatuses"]]
            settle(edited, now)
            edited["status"]["phase"] = "Failed" if any(codes) else "Succeeded"

        if pod["status"].get("phase") not in _TERMINAL and pod["status"].get("containerStatuses"):
            self._world.api.change(PODS, pod, edit)
        self._forget(meta["uid"])
        self._world.api.delete(PODS, meta["namespace"], meta["name"], Deletion(grace_s=0, uid=meta["uid"]))

    def _kill_status(self, pod: Obj, container: Obj, now: str) -> None:
        held = find_status(pod, container["name"]) or {"state": {}}
        if "terminated" in held["state"]:
            return
        if last := (held.get("lastState") or {}).get("terminated"):
            # It waited to be started again: its last end is its end.
            set_status(pod, container["name"], {"state": {"terminated": last}, "ready": False, "started": False})
            return
        started = (held["state"].get("running") or {}).get("startedAt")
        code = self._settings(pod, container).stop_exit_code if started else 137
        end = containers.terminated(started, now, code, "" if started else "ContainerStatusUnknown")
        set_status(pod, container["name"], {"state": end, "ready": False, "started": False})

    def _fire(self, due: Due) -> None:
        pod = self._world.store.get(PODS, *due.key)
        if pod is None or pod["metadata"]["uid"] != due.uid:
            return
        node = pod["spec"]["nodeName"]
        if node in self._world.down_nodes:
            self._held.setdefault(node, []).append(due)
            return
        if due.action == "killed":
            self._killed(pod)
            return
        if pod["metadata"].get("deletionTimestamp"):
            return
        if due.action == "mount":
            self._retry_mount(pod)
            return
        if due.action == "deadline":
            self._end_at_deadline(pod)
            return
        actions = {
            "pulled": self._pulled,
            "pull-back-off": self._back_off_pull,
            "ready": self._become_ready,
            "exit": self._exit,
            "restart": self._pull,
            "checkpoint": self._mark_checkpoint,
        }
        listed = (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]
        actions[due.action](pod, next(each for each in listed if each["name"] == due.container))

    def _end_at_deadline(self, pod: Obj) -> None:
        """The pod fails as a whole; its containers are killed, and the object stays."""
        if pod["status"].get("phase") in _TERMINAL:
            return
        now, text = self._world.clock.stamp(), "Pod was active on the node longer than the specified deadline"

        def edit(edited: Obj) -> None:
            for container in (edited["spec"].get("initContainers") or []) + edited["spec"]["containers"]:
                self._kill_status(edited, container, now)
            settle(edited, now)
            edited["status"].update(phase="Failed", reason="DeadlineExceeded", message=text)

        self._say(pod, "DeadlineExceeded", text)
        self._world.api.change(PODS, pod, edit)
        self._forget(pod["metadata"]["uid"])

    def _retry_mount(self, pod: Obj) -> None:
        problem = mount_problem(self._world.store, pod)
        if problem:
            self._world.recorder.warn(PODS, pod, problem[0], problem[1], "kubelet")
            self._arm(pod, "", "mount", _MOUNT_RETRY_S)
            return
        self._world.devices.allocate(pod["spec"]["nodeName"], pod, pod_gpus(pod))
        self._start_next(pod)

    def _wait(self, pod: Obj, container: Obj, reason: str, message: str) -> None:
        def edit(edited: Obj) -> None:
            set_status(edited, container["name"], containers.waiting(container, reason, message))

        self._world.api.change(PODS, pod, edit)

    def _forget(self, uid: str) -> None:
        self.timers.cancel(uid)
        self._world.devices.release(uid)

    def _newest(self, pod: Obj) -> Obj:
        meta = pod["metadata"]
        return self._world.store.get(PODS, meta["namespace"], meta["name"]) or pod

    def _settings(self, pod: Obj, container: Obj) -> Settings:
        return settings_of(pod, container, self._options.default_run_s)

    def _say(self, pod: Obj, reason: str, text: str) -> None:
        self._world.recorder.record(PODS, pod, reason, text, "kubelet")

    def _arm(self, pod: Obj, container: str, action: str, simulated_s: float) -> None:
        meta = pod["metadata"]
        self.timers.arm(Due((meta["namespace"], meta["name"]), meta["uid"], container, action), simulated_s)

    def _arm_once(self, pod: Obj, container: str, action: str, simulated_s: float) -> None:
        meta = pod["metadata"]
        due = Due((meta["namespace"], meta["name"]), meta["uid"], container, action)
        if not self.timers.has(due):
            self.timers.arm(due, simulated_s)


def _needs_work(change: Change) -> bool:
    """Bound, marked for deletion or ended just now; the kubelet's own status writes need no second look."""
    before = change.previous.object if change.previous else None
    if before is None or not before["spec"].get("nodeName"):
        return True
    deleted = change.object["metadata"].get("deletionTimestamp")
    if deleted and not before["metadata"].get("deletionTimestamp"):
        return True
    return bool(change.object["status"].get("phase") in _TERMINAL and before["status"].get("phase") not in _TERMINAL)


def _env_names(container: Obj) -> set[str]:
    return {each.get("name", "") for each in container.get("env") or ()}


def _pod_address(uid: str) -> str:
    number = int(uid[:6], 16)
    return f"10.{200 + (number >> 16) % 50}.{(number >> 8) % 256}.{1 + number % 254}"
