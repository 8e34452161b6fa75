"""Values that the API server fills in when a field is left out."""

import hashlib

from clusters.simulated.quantities import parse_quantity
from clusters.simulated.resources import Obj

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def default_pod(pod: Obj) -> None:
    spec = pod["spec"]
    default_pod_spec(spec)
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        _default_requests(container)
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for condition in ("not-ready", "unreachable"):
        _tolerate_for_a_while(tolerations, f"node.kubernetes.io/{condition}")
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        since = pod["metadata"]["creationTimestamp"]
        pod["status"]["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": since}]


def default_pod_spec(spec: Obj) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        if set(volume) <= {"name"}:
            volume["emptyDir"] = {}


def default_job(job: Obj) -> None:
    """The selector and the template's labels follow from the uid, which must be set already."""
    spec, uid, name = job["spec"], job["metadata"]["uid"], job["metadata"]["name"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    if not spec["manualSelector"]:
        for prefix in ("", "batch.kubernetes.io/"):
            labels[f"{prefix}controller-uid"] = uid
            labels[f"{prefix}job-name"] = name
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    _default_template(template)
    job["status"] = {}


def default_cron_job(cron_job: Obj) -> None:
    """The Jobs get their own defaults when they are made; the pods' stand in the template already."""
    spec = cron_job["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    spec["jobTemplate"].setdefault("metadata", {})
    _default_template(job.setdefault("template", {}))
    cron_job["status"] = {}


def default_deployment(deployment: Obj) -> None:
    spec = deployment["spec"]
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_replica_set(deployment)


def default_stateful_set(stateful_set: Obj) -> None:
    spec = stateful_set["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    spec.setdefault("replicas", 1)
    _default_template(spec.setdefault("template", {}))
    stateful_set["status"] = {"replicas": 0, "availableReplicas": 0}


def default_replica_set(replica_set: Obj) -> None:
    spec = replica_set["spec"]
    spec.setdefault("replicas", 1)
    _default_template(spec.setdefault("template", {}))
    replica_set["status"] = {"replicas": 0} if "strategy" not in spec else {}


def default_service(service: Obj) -> None:
    spec = service["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("clusterIP", _service_address(service["metadata"]["uid"]))
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    service["status"] = {"loadBalancer": {}}


def default_claim(claim: Obj) -> None:
    claim["spec"].setdefault("volumeMode", "Filesystem")
    claim["status"] = {"phase": "Pending"}


def default_namespace(namespace: Obj) -> None:
    meta = namespace["metadata"]
    meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def default_priority_class(priority_class: Obj) -> None:
    priority_class.pop("spec", None)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_quota(quota: Obj) -> None:
    quota["status"] = {}


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort by cpu and memory of all containers."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    pairs = [_cpu_and_memory(container) for container in containers]
    if all(not requests and not limits for requests, limits in pairs):
        return "BestEffort"
    if all(len(limits) == 2 and requests == limits for requests, limits in pairs):
        return "Guaranteed"
    return "Burstable"


def _cpu_and_memory(container: Obj) -> tuple[dict[str, int], dict[str, int]]:
    resources = container.get("resources") or {}
    requests, limits = (
        {
            name: parse_quantity(value)
            for name, value in (resources.get(part) or {}).items()
            if name in ("cpu", "memory")
        }
        for part in ("requests", "limits")
    )
    return requests, limits


def _default_container(container: Obj) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    tag = str(container.get("image", "")).rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    container.setdefault("resources", {})
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        if container.get(probe):
            container[probe] = {**_PROBE, **container[probe]}
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")


def _default_requests(container: Obj) -> None:
    """Requests follow limits, in pods only: a template is stored as it was given."""
    resources = container["resources"]
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _default_template(template: Obj) -> None:
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def _tolerate_for_a_while(tolerations: list[Obj], key: str) -> None:
    """Five minutes on a lost node, as the admission plug-in adds it."""
    if not any(held.get("key") in (key, None) and held.get("effect") in ("NoExecute", None) for held in tolerations):
        tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _service_address(uid: str) -> str:
    digest = hashlib.sha256(uid.encode()).digest()
    return f"10.{96 + digest[0] % 16}.{digest[1]}.{1 + digest[2] % 254}"
