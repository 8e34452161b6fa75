"""The pod template that training and services share."""

import re
from collections.abc import Iterable, Mapping

from clusters.manifests import checkout, names
from clusters.manifests.values import ContainerValues, Json, PodValues, TolerationValues

MAIN_CONTAINER = "main"
# A lost node shall not hold a gang for the five minutes that are the default.
NODE_LOST_S = 60
HUGE_PAGES_PATH = "/dev/hugepages"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  the path inside the container


def pod_spec(pod: PodValues, domain: str, *, env: Iterable[Json] = (), main: Mapping[str, object]) -> Json:
    """The spec without gate and restart policy.

    `env` are variables of ours (before the person's, which may refer to them), `main` further fields of the
    main container (ports, probes).
    """
    volumes = _Volumes(pod)
    spec: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pod.grace_s,
        "tolerations": [_toleration(item) for item in (*standing_tolerations(pod, domain), *pod.tolerations)],
        "containers": [_main_container(pod, volumes, env, main)],
    }
    if pod.code is not None:
        spec["initContainers"] = [checkout.container(pod.code, _resources(pod.container, {}))]
    if pod.priority_class_name is not None:
        spec["priorityClassName"] = pod.priority_class_name
    if pod.image_pull_secret is not None:
        spec["imagePullSecrets"] = [{"name": pod.image_pull_secret}]
    if pod.runtime_class is not None:
        spec["runtimeClassName"] = pod.runtime_class
    if pod.node_labels:
        spec["affinity"] = _affinity(pod.node_labels)
    return spec | _unless_empty("volumes", volumes.volumes)


def _affinity(labels: Mapping[str, tuple[str, ...]]) -> Json:
    """Nodes with one of the labels. The decision picks the node; this says on the cluster what was asked for."""
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]} for key, values in labels.items()
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def standing_tolerations(pod: PodValues, domain: str) -> tuple[TolerationValues, ...]:
    """What every pod of ours tolerates: the taints of GPU nodes, and for a minute a node that is lost."""
    keys = standing_keys(pod.accelerator_resource, domain)
    lost = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    return (
        *(TolerationValues(key=key, operator="Exists") for key in keys),
        *(TolerationValues(key=key, operator="Exists", effect="NoExecute", seconds=NODE_LOST_S) for key in lost),
    )


def standing_keys(accelerator_resource: str, domain: str) -> tuple[str, ...]:
    """The taint keys that pods with this device tolerate whatever the value; the scheduler counts on them."""
    vendor = accelerator_resource.partition("/")[0]
    # Nodes with MIG slices keep the taint of whole GPUs.
    return tuple(dict.fromkeys((f"{vendor}/gpu", accelerator_resource, names.label(domain, "dedicated"))))


def variable(name: str, value: str) -> Json:
    """A plain variable."""
    return {"name": name, "value": value}


def variable_from_label(name: str, key: str) -> Json:
    """A variable that the kubelet fills from a label of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}


class _Volumes:
    """Volumes and mounts of the main container, every volume with a name of its own."""

    def __init__(self, pod: PodValues) -> None:
        self.volumes: list[Json] = []
        self.mounts: list[Json] = []
        self._names: set[str] = set()
        container = pod.container
        for claim in container.claims:
            source: Json = {"persistentVolumeClaim": {"claimName": claim.claim}}
            self._add(_volume_name(claim.path), source, claim.path, _unless_empty("readOnly", claim.read_only))
        for file in container.secret_files:
            source = {"secret": {"secretName": file.name}}
            self._add("secret", source, file.path, {"subPath": file.key, "readOnly": True})
        if container.shared_memory is not None:
            source = {"emptyDir": {"medium": "Memory", "sizeLimit": container.shared_memory}}
            self._add("shm", source, SHARED_MEMORY_PATH, {})
        if container.huge_pages is not None:
            source = {"emptyDir": {"medium": f"HugePages-{container.huge_pages.size}"}}
            self._add("hugepages", source, HUGE_PAGES_PATH, {})
        if pod.code is not None:
            self._add_code(pod.code.secret)

    def _add(self, wanted: str, source: Json, path: str, options: Json) -> None:
        name = self._free_name(wanted)
        self.volumes.append({"name": name, **source})
        self.mounts.append({"name": name, "mountPath": path, **options})

    def _add_code(self, secret: str | None) -> None:
        self.volumes += checkout.volumes(secret)
        self.mounts.append(checkout.MOUNT)

    def _free_name(self, wanted: str) -> str:
        taken = self._names | checkout.VOLUME_NAMES
        name = next(name for name in _candidates(wanted) if name not in taken)
        self._names.add(name)
        return name


def _candidates(wanted: str) -> Iterable[str]:
    yield wanted
    number = 2
    while True:
        yield f"{wanted}-{number}"
        number += 1


def _volume_name(path: str) -> str:
    """`/data` -> "data": a DNS label with room for a number behind it."""
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:50].strip("-") or "volume"


def _main_container(pod: PodValues, volumes: _Volumes, env: Iterable[Json], main: Mapping[str, object]) -> Json:
    container = pod.container
    devices = {pod.accelerator_resource: str(pod.gpus)} if pod.gpus else {}
    if pages := container.huge_pages:
        devices[f"hugepages-{pages.size}"] = pages.amount
    return {
        "name": MAIN_CONTAINER,
        "image": container.image,
        **_unless_empty("command", list(container.command)),
        **_unless_empty("args", list(container.args)),
        **({"workingDir": checkout.working_folder(pod.code)} if pod.code else {}),
        **_unless_empty("env", [*env, *_variables(container)]),
        **_resources(container, devices),
        **_unless_empty("volumeMounts", volumes.mounts),
        **main,
    }


def _variables(container: ContainerValues) -> list[Json]:
    plain = [variable(name, value) for name, value in container.env.items()]
    secret: list[Json] = [
        {"name": item.env, "valueFrom": {"secretKeyRef": {"name": item.name, "key": item.key}}}
        for item in container.secret_variables
    ]
    return plain + secret


def _resources(container: ContainerValues, devices: Mapping[str, str]) -> Json:
    """`devices` are not shared out: what is asked for is the limit."""
    limits = {**devices, **container.limits}
    requests = {**devices, **container.requests}
    return _unless_empty("resources", _unless_empty("limits", limits) | _unless_empty("requests", requests))


def _toleration(toleration: TolerationValues) -> Json:
    return {
        "key": toleration.key,
        "operator": toleration.operator,
        **_unless_empty("value", toleration.value),
        **_unless_empty("effect", toleration.effect),
        **({} if toleration.seconds is None else {"tolerationSeconds": toleration.seconds}),
    }


def _unless_empty(key: str, value: object) -> Json:
    return {key: value} if value else {}
