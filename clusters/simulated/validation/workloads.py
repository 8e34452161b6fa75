"""Deployments, replica sets, services, claims and priority classes."""

from collections.abc import Iterator

from clusters.simulated.errors import Cause
from clusters.simulated.matching import selector_matches
from clusters.simulated.quantities import parse_quantity
from clusters.simulated.resources import Obj
from clusters.simulated.validation.metadata import (
    forbidden_field,
    immutable,
    invalid_value,
    label_causes,
    required,
    unsupported,
)
from clusters.simulated.validation.pods import pod_spec_causes

_STATEFUL_CHANGES = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def replicated_causes(obj: Obj) -> Iterator[Cause]:
    """A Deployment or a ReplicaSet."""
    spec, template = obj["spec"], obj["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if spec.get("replicas", 1) < 0:
        yield invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    if not spec.get("selector"):
        yield required("spec.selector")
    elif not selector_matches(spec["selector"], labels):
        yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from label_causes(labels, "spec.template.labels")
    yield from pod_spec_causes(template.get("spec") or {}, "spec.template.spec")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if (spec.get("strategy") or {}).get("type", "RollingUpdate") not in ("RollingUpdate", "Recreate"):
        yield unsupported("spec.strategy.type", spec["strategy"]["type"], ("Recreate", "RollingUpdate"))
    yield from _surge_causes((spec.get("strategy") or {}).get("rollingUpdate") or {})


def replicated_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    if old["spec"].get("selector") != new["spec"].get("selector"):
        yield immutable("spec.selector", "v1.LabelSelector{...}")


def stateful_causes(obj: Obj) -> Iterator[Cause]:
    """A StatefulSet."""
    yield from replicated_causes(obj)
    spec = obj["spec"]
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in ("OrderedReady", "Parallel"):
        yield unsupported("spec.podManagementPolicy", policy, ("OrderedReady", "Parallel"))
    strategy = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate")
    if strategy not in ("RollingUpdate", "OnDelete"):
        yield invalid_value("spec.updateStrategy", "...", "must be 'RollingUpdate' or 'OnDelete'")
    if "activeDeadlineSeconds" in (spec["template"].get("spec") or {}):
        yield forbidden_field(
            "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in StatefulSet is not Supported"
        )


def stateful_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    """All but a few fields stay as they were made."""
    fixed = ({key: value for key, value in each["spec"].items() if key not in _STATEFUL_CHANGES} for each in (old, new))
    if next(fixed) != next(fixed):
        yield forbidden_field("spec", _STATEFUL_TEXT)


def service_causes(service: Obj) -> Iterator[Cause]:
    spec = service["spec"]
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(ports):
        if not 1 <= port.get("port", 0) <= 65535:
            yield invalid_value(
                f"spec.ports[{index}].port", port.get("port", 0), "must be between 1 and 65535, inclusive"
            )
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")


def service_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    if old["spec"].get("clusterIP") != new["spec"].get("clusterIP"):
        yield immutable("spec.clusterIPs[0]", new["spec"].get("clusterIP", ""))


def claim_causes(claim: Obj) -> Iterator[Cause]:
    modes = claim["spec"].get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, _MODES)
    storage = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    else:
        yield from quantity_causes({"storage": storage}, "spec.resources.requests")


def claim_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    if old["spec"] != new["spec"]:
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden_field("spec", text)


def priority_class_causes(priority_class: Obj) -> Iterator[Cause]:
    name, value = priority_class["metadata"]["name"], priority_class.get("value", 0)
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        text = (
            "priority class names with 'system-' prefix are reserved for system use only. "
            "error: unknown system priority class"
        )
        yield forbidden_field("metadata.name", text)
    elif value > 1_000_000_000 and not name.startswith("system-"):
        yield forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000")


def priority_class_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    for field, default in (("value", 0), ("preemptionPolicy", "PreemptLowerPriority")):
        if old.get(field, default) != new.get(field, default):
            yield forbidden_field(field, "may not be changed in an update.")


def quota_causes(quota: Obj) -> Iterator[Cause]:
    yield from quantity_causes(quota["spec"].get("hard") or {}, "spec.hard")


def quantity_causes(quantities: Obj, path: str) -> Iterator[Cause]:
    for name, quantity in quantities.items():
        if parse_quantity(quantity) < 0:
            yield invalid_value(f"{path}[{name}]", str(quantity), "must be greater than or equal to 0")


def _surge_causes(rolling: Obj) -> Iterator[Cause]:
    path = "spec.strategy.rollingUpdate"
    values = [str(rolling.get(field, "25%")) for field in ("maxUnavailable", "maxSurge")]
    for field, value in zip(("maxUnavailable", "maxSurge"), values, strict=True):
        if not value.removesuffix("%").isdigit():
            yield invalid_value(f"{path}.{field}", value, "must be an integer or percentage (e.g '1' or '5%')")
            return
    if all(int(value.removesuffix("%")) == 0 for value in values):
        yield invalid_value(f"{path}.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0")
