"""Pod specs at create, and what may change on a pod afterwards."""

from collections.abc import Iterator
from typing import Any

from clusters.simulated.errors import Cause
from clusters.simulated.quantities import is_extended, is_overcommittable, parse_quantity
from clusters.simulated.resources import Obj
from clusters.simulated.store import copy_of
from clusters.simulated.validation.metadata import (
    dns_label_causes,
    forbidden_field,
    invalid_value,
    key_causes,
    required,
    unsupported,
)

_UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def pod_spec_causes(spec: Obj, path: str = "spec") -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names: set[str] = set()
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        name = volume.get("name", "")
        if name in volumes:
            yield _duplicate(f"{path}.volumes[{index}].name", name)
        volumes.add(name)
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container_causes(container, names, volumes, f"{path}.{field}[{index}]")
    policy = spec.get("restartPolicy", "Always")
    if policy not in ("Always", "OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never"))
    yield from _gate_causes(spec, path)
    yield from _placement_causes(spec, path)
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from dns_label_causes(spec[field], f"{path}.{field}")


def pod_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    """Compares the old and new spec of a pod. Gated pods may also narrow where they may run."""
    yield from _gate_changes(old, new)
    yield from _toleration_changes(old, new)
    left, right = _comparable(old), _comparable(new)
    if old.get("schedulingGates"):
        yield from _narrowing_causes(left, right)
    if left != right:
        yield forbidden_field("spec", _UPDATE_TEXT)


def _comparable(spec: Obj) -> Obj:
    """A copy without what may change on every pod."""
    bare = copy_of(spec)
    for field in ("schedulingGates", "tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        bare.pop(field, None)
    for field in ("containers", "initContainers"):
        for container in bare.get(field) or ():
            container.pop("image", None)
    return bare


def _gate_changes(old: Obj, new: Obj) -> Iterator[Cause]:
    before = {gate["name"] for gate in old.get("schedulingGates") or ()}
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate["name"] not in before:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden_field(f"spec.schedulingGates[{index}].name", text)


def _toleration_changes(old: Obj, new: Obj) -> Iterator[Cause]:
    kept = new.get("tolerations") or []
    if any(toleration not in kept for toleration in old.get("tolerations") or ()):
        yield forbidden_field(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _narrowing_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    """Allows added selectors and affinity on a gated pod, then takes both out of the comparison."""
    before, after = old.pop("nodeSelector", None) or {}, new.pop("nodeSelector", None) or {}
    if any(after.get(key) != value for key, value in before.items()):
        text = "field is immutable: only additions are allowed for a pod with scheduling gates"
        yield invalid_value("spec.nodeSelector", after, text)
    held, wanted = _take_node_affinity(old), _take_node_affinity(new)
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if held is not None and wanted is None:
        yield invalid_value(path, "null", "field is immutable: cannot be removed once it is set")
    elif held is not None and wanted is not None and not _terms_narrow(held, wanted):
        text = "only additions to matchExpressions and matchFields of existing terms are allowed"
        yield invalid_value(f"{path}.nodeSelectorTerms", "...", text)


def _take_node_affinity(spec: Obj) -> list[Obj] | None:
    """Removes the node affinity from a spec; answers its required terms, None if there are none."""
    affinity = spec.get("affinity") or {}
    node = affinity.pop("nodeAffinity", None) or {}
    if not affinity:
        spec.pop("affinity", None)
    terms: list[Obj] = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    return terms or None


def _terms_narrow(old: list[Obj], new: list[Obj]) -> bool:
    return len(old) == len(new) and all(
        wanted in (after.get(field) or ())
        for before, after in zip(old, new, strict=True)
        for field in ("matchExpressions", "matchFields")
        for wanted in before.get(field) or ()
    )


def _container_causes(container: Obj, names: set[str], volumes: set[str], path: str) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from dns_label_causes(name, f"{path}.name")
    if name and name in names:
        yield _duplicate(f"{path}.name", name)
    names.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from _resource_causes(container.get("resources") or {}, f"{path}.resources")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            place = f"{path}.volumeMounts[{index}].name"
            yield Cause(place, "FieldValueNotFound", f'Not found: "{mount.get("name", "")}"')
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")


def _resource_causes(resources: Obj, path: str) -> Iterator[Cause]:
    parsed: dict[str, dict[str, int]] = {"limits": {}, "requests": {}}
    for section, values in parsed.items():
        for name, quantity in (resources.get(section) or {}).items():
            place = f"{path}.{section}[{name}]"
            values[name] = parse_quantity(quantity)
            if values[name] < 0:
                yield invalid_value(place, str(quantity), "must be greater than or equal to 0")
            if is_extended(name) and values[name] % 1000:
                yield invalid_value(place, str(quantity), "must be an integer")
    named = parsed["limits"].keys() | parsed["requests"].keys()
    if any(name.startswith("hugepages-") for name in named) and not {"cpu", "memory"} & named:
        yield forbidden_field(path, "HugePages require cpu or memory")
    yield from _pair_causes(parsed["limits"], parsed["requests"], resources, path)


def _pair_causes(limits: dict[str, int], requests: dict[str, int], resources: Obj, path: str) -> Iterator[Cause]:
    for name, asked in requests.items():
        place = f"{path}.requests"
        shown = (resources.get("requests") or {}).get(name)
        if not is_overcommittable(name) and name not in limits:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif not is_overcommittable(name) and limits[name] != asked:
            yield invalid_value(place, shown, f"must be equal to {name} limit of {resources['limits'][name]}")
        elif name in limits and asked > limits[name]:
            limit = resources["limits"][name]
            yield invalid_value(place, shown, f"must be less than or equal to {name} limit of {limit}")


def _gate_causes(spec: Obj, path: str) -> Iterator[Cause]:
    gates = spec.get("schedulingGates") or []
    if gates and spec.get("nodeName"):
        yield forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from key_causes(name, f"{path}.schedulingGates[{index}]")
        if name in seen:
            yield _duplicate(f"{path}.schedulingGates[{index}]", name)
        seen.add(name)


def _duplicate(path: str, name: str) -> Cause:
    return Cause(path, "FieldValueDuplicate", f'Duplicate value: "{name}"')


def _placement_causes(spec: Obj, path: str) -> Iterator[Cause]:
    required_path = f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if wanted is not None and not wanted.get("nodeSelectorTerms"):
        yield required(f"{required_path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate((wanted or {}).get("nodeSelectorTerms") or ()):
        place = f"{required_path}.nodeSelectorTerms[{index}]"
        for expression in term.get("matchExpressions") or ():
            yield from _expression_causes(expression, f"{place}.matchExpressions")
        for expression in term.get("matchFields") or ():
            yield from _field_causes(expression, f"{place}.matchFields")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_causes(toleration, f"{path}.tolerations[{index}]")


def _expression_causes(expression: Obj, path: str) -> Iterator[Cause]:
    operator, values = expression.get("operator"), expression.get("values") or []
    if operator not in _OPERATORS:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    yield from key_causes(expression.get("key", ""), f"{path}.key")


def _field_causes(expression: Obj, path: str) -> Iterator[Cause]:
    values: list[Any] = expression.get("values") or []
    if expression.get("key") != "metadata.name":
        yield invalid_value(f"{path}.key", expression.get("key", ""), "not a valid field selector key")
    if expression.get("operator") not in ("In", "NotIn"):
        yield invalid_value(f"{path}.operator", expression.get("operator"), "not a valid selector operator")
    elif len(values) != 1:
        yield required(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )


def _toleration_causes(toleration: Obj, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    effect = toleration.get("effect") or ""
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if not toleration.get("key") and operator != "Exists":
        yield invalid_value(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if operator == "Exists" and toleration.get("value"):
        yield invalid_value(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        yield unsupported(f"{path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield invalid_value(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
