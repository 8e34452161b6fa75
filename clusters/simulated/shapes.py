"""Types of the fields that this cluster reads: a wrong type is a 400, as a decoder would say it.

Unknown fields are kept and not looked at. Nulls count as absent.
"""

from typing import Any

from clusters.simulated.errors import bad_request
from clusters.simulated.quantities import amounts
from clusters.simulated.resources import Obj, Resource


class _Strings:
    """A map of strings."""


class _Scalars:
    """A map of quantities: strings or numbers."""


Schema = Any
_LABELS: Schema = _Strings
_EXPRESSIONS: Schema = [{"key": str, "operator": str, "values": [str]}]
_SELECTOR: Schema = {"matchLabels": _LABELS, "matchExpressions": _EXPRESSIONS}
_REQUIRED: Schema = {"nodeSelectorTerms": [{"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}]}
_METADATA: Schema = {
    "name": str, "generateName": str, "namespace": str, "uid": str, "resourceVersion": str, "labels": _LABELS,
    "annotations": _LABELS, "finalizers": [str],
    "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool}],
}  # fmt: skip
_PROBE: Schema = {"initialDelaySeconds": int, "periodSeconds": int, "timeoutSeconds": int}
_CONTAINER: Schema = {
    "name": str, "image": str, "command": [str], "args": [str], "workingDir": str, "imagePullPolicy": str,
    "env": [{"name": str, "value": str, "valueFrom": dict}],
    "resources": {"limits": _Scalars, "requests": _Scalars},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
    "ports": [{"containerPort": int, "name": str, "protocol": str}],
    "readinessProbe": _PROBE, "livenessProbe": _PROBE, "startupProbe": _PROBE, "restartPolicy": str,
}  # fmt: skip
_POD_SPEC: Schema = {
    "containers": [_CONTAINER], "initContainers": [_CONTAINER], "restartPolicy": str, "nodeName": str,
    "nodeSelector": _LABELS, "schedulingGates": [{"name": str}], "hostname": str, "subdomain": str,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _REQUIRED}},
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}], "priorityClassName": str,
    "terminationGracePeriodSeconds": int, "activeDeadlineSeconds": int, "overhead": _Scalars,
    "runtimeClassName": str,
}  # fmt: skip
_TEMPLATE: Schema = {"metadata": {"labels": _LABELS, "annotations": _LABELS}, "spec": _POD_SPEC}
_JOB_SPEC: Schema = {
    "parallelism": int, "completions": int, "backoffLimit": int, "suspend": bool, "completionMode": str,
    "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "podReplacementPolicy": str,
    "manualSelector": bool, "selector": _SELECTOR, "template": _TEMPLATE,
    "podFailurePolicy": {"rules": [{
        "action": str,
        "onExitCodes": {"operator": str, "values": [int], "containerName": str},
        "onPodConditions": [{"type": str, "status": str}],
    }]},
}  # fmt: skip
_SPECS: dict[str, Schema] = {
    "Pod": _POD_SPEC,
    "Job": _JOB_SPEC,
    "CronJob": {
        "schedule": str, "timeZone": str, "concurrencyPolicy": str, "suspend": bool, "startingDeadlineSeconds": int,
        "successfulJobsHistoryLimit": int, "failedJobsHistoryLimit": int,
        "jobTemplate": {"metadata": {"labels": _LABELS, "annotations": _LABELS}, "spec": _JOB_SPEC},
    },
    "Deployment": {
        "replicas": int, "selector": _SELECTOR, "template": _TEMPLATE, "minReadySeconds": int,
        "strategy": {"type": str, "rollingUpdate": dict}, "paused": bool, "progressDeadlineSeconds": int,
    },
    "StatefulSet": {
        "replicas": int, "selector": _SELECTOR, "template": _TEMPLATE, "minReadySeconds": int, "serviceName": str,
        "podManagementPolicy": str, "updateStrategy": {"type": str},
    },
    "ReplicaSet": {"replicas": int, "selector": _SELECTOR, "template": _TEMPLATE, "minReadySeconds": int},
    "Service": {"selector": _LABELS, "clusterIP": str, "type": str, "ports": [{"port": int, "name": str}]},
    "Node": {"unschedulable": bool, "taints": [{"key": str, "value": str, "effect": str}]},
    "ResourceQuota": {"hard": _Scalars},
    "PersistentVolumeClaim": {"accessModes": [str], "resources": {"requests": _Scalars}, "volumeName": str},
}  # fmt: skip
_TOP: dict[str, Schema] = {
    "PriorityClass": {"value": int, "globalDefault": bool, "preemptionPolicy": str},
    "RuntimeClass": {"handler": str, "overhead": {"podFixed": _Scalars}},
}  # fmt: skip


def decoded(resource: Resource, body: Any) -> Obj:
    """The object of a request body without nulls, or a 400 that names the first field of a wrong type."""
    if not isinstance(body, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: cannot decode {_word(body)} as an object")
    kind, version = body.get("kind"), body.get("apiVersion")
    if (kind or resource.kind) != resource.kind or (version or resource.api_version) != resource.api_version:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"found kind {kind!r} of {version!r}, wanted {resource.kind!r} of {resource.api_version!r}"
        )
    clean: Obj = _without_nulls({key: value for key, value in body.items() if key not in ("kind", "apiVersion")})
    spec = _SPECS.get(resource.kind, dict)
    schema = {"metadata": _METADATA, "spec": spec, "status": dict, **_TOP.get(resource.kind, {})}
    wrong = _mismatch(schema, clean, "")
    if wrong:
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {wrong}'
        )
    clean.setdefault("metadata", {})
    return clean


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(held) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [_without_nulls(held) for held in value]
    return value


def _mismatch(schema: Schema, value: Any, path: str) -> str:
    """The first field whose type differs, as the decoder words it; empty if all fit."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return _wrong(value, path, "object")
        fields = (_mismatch(schema[key], value[key], f"{path}.{key}") for key in schema if key in value)
        return next(filter(None, fields), "")
    if isinstance(schema, list):
        if not isinstance(value, list):
            return _wrong(value, path, "array")
        return next(filter(None, (_mismatch(schema[0], held, path) for held in value)), "")
    return _scalar_mismatch(schema, value, path)


def _scalar_mismatch(schema: Schema, value: Any, path: str) -> str:
    if schema in (_Strings, _Scalars):
        if not isinstance(value, dict):
            return _wrong(value, path, "map")
        allowed = (str,) if schema is _Strings else (str, int, float)
        wrong = next((held for held in value.values() if not isinstance(held, allowed)), None)
        if wrong is not None:
            return _wrong(wrong, path, "string")
        return _bad_quantity(value) if schema is _Scalars else ""
    fits = isinstance(value, schema) and not (schema is int and isinstance(value, bool))
    if fits and schema is int and not -(2**63) <= value < 2**63:
        return _wrong(value, path, "int64")
    return "" if fits else _wrong(value, path, schema.__name__)


def _bad_quantity(quantities: Obj) -> str:
    try:
        amounts(quantities)
    except ValueError as error:
        return str(error)
    return ""


def _wrong(value: Any, path: str, wanted: str) -> str:
    return f"json: cannot unmarshal {_word(value)} into Go struct field {path.lstrip('.')} of type {wanted}"


def _word(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return names.get(type(value), "null")
