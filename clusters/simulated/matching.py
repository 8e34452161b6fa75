"""Label and field selectors of requests, and the label rules of nodes: affinity, taints, tolerations."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clusters.simulated.errors import bad_request
from clusters.simulated.resources import Obj, Resource
from clusters.simulated.store import Facts

Requirement = Callable[[dict[str, str]], bool]

_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALITY = re.compile(r"^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$")
_EXISTS = re.compile(r"^(!?)\s*([^=!\s(),]+)$")
_SUPPORTED_FIELDS = {
    "Pod": {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase"},
    "Event": {"reason", "type"}
    | {f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid", "fieldPath")},
    "Node": {"spec.unschedulable"},
    "Job": {"status.successful"},
    "Namespace": {"status.phase"},
}


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch asks for."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def selective(self) -> bool:
        return bool(self.labels or self.fields)

    def matches(self, facts: Facts) -> bool:
        if self.namespace and facts.namespace != self.namespace:
            return False
        if self.name and facts.name != self.name:
            return False
        return all(wanted(facts.labels) for wanted in self.labels) and all(
            wanted(facts.fields) for wanted in self.fields
        )


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """Raises a 400 for what the real server cannot parse."""
    return tuple(_label_requirement(part.strip()) for part in _split(text) if part.strip())


def parse_field_selector(resource: Resource, text: str) -> tuple[Requirement, ...]:
    known = {"metadata.name", "metadata.namespace"} | _SUPPORTED_FIELDS.get(resource.kind, set())
    return tuple(_field_requirement(part.strip(), known) for part in text.split(",") if part.strip())


def selector_matches(selector: Obj | None, labels: dict[str, str]) -> bool:
    """A `LabelSelector` object; an empty one matches everything, a missing one nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def node_matches(spec: Obj, node: Obj) -> bool:
    """Whether a pod's node selector and required node affinity allow this node."""
    labels = node["metadata"].get("labels") or {}
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    terms = required_terms(spec)
    return terms is None or any(_term_holds(term, node, labels) for term in terms)


def required_terms(spec: Obj) -> list[Obj] | None:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or []


def pinned_nodes(spec: Obj) -> set[str] | None:
    """Node names that the affinity pins to by `metadata.name`; None if it does not pin every term."""
    terms = required_terms(spec)
    if terms is None:
        return None
    names: set[str] = set()
    for term in terms:
        pins = [
            field
            for field in term.get("matchFields") or ()
            if field["key"] == "metadata.name" and field["operator"] == "In"
        ]
        if not pins:
            return None
        names.update(pins[0]["values"])
    return names


def untolerated(tolerations: list[Obj], taints: list[Obj], effects: tuple[str, ...]) -> Obj | None:
    """The first taint with one of `effects` that no toleration covers."""
    for taint in taints:
        if taint["effect"] in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def _split(text: str) -> list[str]:
    """At commas outside of parentheses."""
    return re.split(r",(?![^(]*\))", text)


def _label_requirement(part: str) -> Requirement:
    if match := _SET.match(part):
        key, operator, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUALITY.match(part):
        key, operator, value = match.groups()
        return _equality(key, operator, value)
    if match := _EXISTS.match(part):
        absent, key = match.groups()
        return (lambda labels: key not in labels) if absent else (lambda labels: key in labels)
    raise bad_request(f"unable to parse requirement: found '{part}', expected: in, notin, =, ==, !=, or exists")


def _field_requirement(part: str, known: set[str]) -> Requirement:
    match = re.match(r"^([\w.]+)(==|=|!=)(.*)$", part)
    if match is None:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    key, operator, value = match.groups()
    if key not in known:
        raise bad_request(f"field label not supported: {key}")
    return _equality(key, operator, value)


def _equality(key: str, operator: str, value: str) -> Requirement:
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def _term_holds(term: Obj, node: Obj, labels: dict[str, str]) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = {"metadata.name": node["metadata"]["name"]}
    return all(_expression_holds(each, labels) for each in expressions) and all(
        _expression_holds(each, named) for each in fields
    )


def _expression_holds(expression: Obj, labels: dict[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    values: list[Any] = expression.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    return _number_holds(operator, labels.get(key), values)


def _number_holds(operator: str, held: str | None, values: list[Any]) -> bool:
    try:
        have, limit = int(held or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return have > limit if operator == "Gt" else have < limit
