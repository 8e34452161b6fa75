"""JSON patches on our objects. Every patch tests the uid first: a name may be taken by a newer object."""

from collections.abc import Mapping

from clusters.manifests import names

Operation = dict[str, object]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class NotGatedError(ValueError):
    """The pod does not wait at our gate: it was released already, or was never ours."""


def unsuspend(uid: str) -> list[Operation]:
    """Open the Job: its controller then makes the gated pods."""
    return [
        _test("/metadata/uid", uid),
        _test("/spec/suspend", True),  # noqa: FBT003  the value that is tested
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]


def release(pod: Mapping[str, object], node: str, domain: str) -> list[Operation]:
    """Pin the pod, as read from the API server, to the node and take our gate away, both in one step.

    Terms that the pod brings are alternatives, so every one of them gets the node; a gated pod's terms may
    only grow. Raises NotGatedError.
    """
    index = _gate_index(pod, domain)
    gate = f"/spec/schedulingGates/{index}"
    return [
        _test("/metadata/uid", _mapping(pod, "metadata").get("uid")),
        _test(f"{gate}/name", names.gate(domain)),
        *_pin(_mapping(_mapping(pod, "spec"), "affinity"), node),
        {"op": "remove", "path": gate},
    ]


def scale(uid: str, replicas: int) -> list[Operation]:
    """Set the wanted number of replicas of a Deployment."""
    return [_test("/metadata/uid", uid), {"op": "replace", "path": "/spec/replicas", "value": replicas}]


def pinned_node(pod: Mapping[str, object]) -> str | None:
    """The one node that the pod is pinned to, to tell whether a release has happened; None when it is not."""
    nodes = {_node_of(term) for term in _terms(_mapping(_mapping(pod, "spec"), "affinity"))}
    return nodes.pop() if len(nodes) == 1 else None


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _gate_index(pod: Mapping[str, object], domain: str) -> int:
    # Other controllers may add gates of theirs at creation, so ours need not be the first.
    gates = _mapping(pod, "spec").get("schedulingGates")
    for index, gate in enumerate(gates if isinstance(gates, list) else []):
        if isinstance(gate, Mapping) and gate.get("name") == names.gate(domain):
            return index
    raise NotGatedError(f"no gate {names.gate(domain)} on pod {_mapping(pod, 'metadata').get('name')}")


def _pin(affinity: Mapping[str, object], node: str) -> list[Operation]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    node_affinity = _mapping(affinity, "nodeAffinity")
    terms = _terms(affinity)
    if terms:
        return [_pin_term(index, term, field) for index, term in enumerate(terms)]
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if node_affinity:
        return [{"op": "add", "path": f"/spec/affinity/nodeAffinity/{_REQUIRED}", "value": required}]
    if affinity:
        return [{"op": "add", "path": "/spec/affinity/nodeAffinity", "value": {_REQUIRED: required}}]
    return [{"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {_REQUIRED: required}}}]


def _pin_term(index: int, term: Mapping[str, object], field: Mapping[str, object]) -> Operation:
    path = f"/spec/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms/{index}/matchFields"
    if term.get("matchFields"):
        return {"op": "add", "path": f"{path}/-", "value": field}
    return {"op": "add", "path": path, "value": [field]}


def _terms(affinity: Mapping[str, object]) -> list[Mapping[str, object]]:
    terms = _mapping(_mapping(affinity, "nodeAffinity"), _REQUIRED).get("nodeSelectorTerms")
    return [term for term in terms if isinstance(term, Mapping)] if isinstance(terms, list) else []


def _node_of(term: Mapping[str, object]) -> str | None:
    fields = term.get("matchFields")
    for field in fields if isinstance(fields, list) else []:
        if field.get("key") == "metadata.name" and len(field.get("values", [])) == 1:
            return str(field["values"][0])
    return None


def _mapping(value: Mapping[str, object], key: str) -> Mapping[str, object]:
    item = value.get(key)
    return item if isinstance(item, Mapping) else {}
