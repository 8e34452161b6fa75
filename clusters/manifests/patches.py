"""JSON patches on our objects. Every patch tests the uid first: a name may be taken by a newer object."""

from collections.abc import Mapping
from typing import Any

from clusters.manifests import names

Operation = dict[str, Any]

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


def adopt(job: Mapping[str, Any], labels: Mapping[str, str]) -> list[Operation]:
    """Make a Job that its schedule made, as read from the API server, the Job of a run: while it is suspended.

    Its pods get the labels from its template, and the template is open for change until the first start.
    """
    return [
        _test("/metadata/uid", job["metadata"]["uid"]),
        _test("/spec/suspend", True),  # noqa: FBT003  the value that is tested
        *(
            {"op": "add", "path": f"{place}/labels/{key.replace('~', '~0').replace('/', '~1')}", "value": value}
            for place in ("/metadata", "/spec/template/metadata")
            for key, value in labels.items()
        ),
    ]


def pause(uid: str, *, is_paused: bool) -> list[Operation]:
    """Let a schedule make no runs, or make them again."""
    return [_test("/metadata/uid", uid), {"op": "replace", "path": "/spec/suspend", "value": is_paused}]


def release(pod: Mapping[str, Any], node: str, domain: str) -> list[Operation]:
    """Pin the pod, as read from the API server, to the node and take our gate away, both in one step.

    Terms that the pod brings are alternatives, so every one of them gets the node; a gated pod's terms may
    only grow. Raises NotGatedError.
    """
    index = names.gate_index(pod, domain)
    if index is None:
        raise NotGatedError(f"no gate {names.gate(domain)} on pod {pod['metadata'].get('name')}")
    gate = f"/spec/schedulingGates/{index}"
    return [
        _test("/metadata/uid", pod["metadata"]["uid"]),
        _test(f"{gate}/name", names.gate(domain)),
        *_pin(pod["spec"].get("affinity") or {}, node),
        {"op": "remove", "path": gate},
    ]


def scale(uid: str, replicas: int) -> list[Operation]:
    """Set the wanted number of replicas of a Deployment."""
    return [_test("/metadata/uid", uid), {"op": "replace", "path": "/spec/replicas", "value": replicas}]


def pinned_node(pod: Mapping[str, Any]) -> str | None:
    """The one node that the pod is pinned to, to tell whether a release has happened; None when it is not."""
    return node_required(pod["spec"].get("affinity") or {})


def node_required(affinity: Mapping[str, Any]) -> str | None:
    """The one node that an affinity allows."""
    nodes = {_node_of(term) for term in _terms(affinity)}
    return nodes.pop() if len(nodes) == 1 else None


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _pin(affinity: Mapping[str, Any], node: str) -> list[Operation]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = _terms(affinity)
    if terms:
        return [_pin_term(index, term, field) for index, term in enumerate(terms)]
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if affinity.get("nodeAffinity"):
        return [{"op": "add", "path": f"/spec/affinity/nodeAffinity/{_REQUIRED}", "value": required}]
    if affinity:
        return [{"op": "add", "path": "/spec/affinity/nodeAffinity", "value": {_REQUIRED: required}}]
    return [{"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {_REQUIRED: required}}}]


def _pin_term(index: int, term: Mapping[str, Any], field: Mapping[str, object]) -> Operation:
    path = f"/spec/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms/{index}/matchFields"
    if term.get("matchFields"):
        return {"op": "add", "path": f"{path}/-", "value": field}
    return {"op": "add", "path": path, "value": [field]}


def _terms(affinity: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    return list(required.get("nodeSelectorTerms") or ())


def _node_of(term: Mapping[str, Any]) -> str | None:
    for field in term.get("matchFields") or ():
        if field["key"] == "metadata.name" and field["operator"] == "In" and len(field["values"]) == 1:
            return str(field["values"][0])
    return None
