"""Paths of the Kubernetes API, and its discovery documents."""

from dataclasses import dataclass
from typing import Any

from clusters.simulated.errors import unknown_path
from clusters.simulated.resources import BY_PATH, RESOURCES, Resource

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# Questions that are answered and not stored: the kind of each group.
REVIEWS = {"authorization.k8s.io": "SelfSubjectAccessReview", "authentication.k8s.io": "SelfSubjectReview"}


@dataclass(frozen=True, slots=True)
class Target:
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target:
    """Raises the 404 of a path that names no kind."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise unknown_path()
    name, subresource = ([*rest[1:], "", ""])[:2]
    if subresource and subresource not in _subresources(resource):
        raise unknown_path()
    if name and resource.namespaced and not namespace:
        raise unknown_path()
    return Target(resource, namespace, name, subresource)


def discovery(path: str) -> dict[str, Any] | None:
    """The document at a discovery path; None for any other path."""
    parts = tuple(part for part in path.split("/") if part)
    if parts == ("api",):
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ("apis",):
        groups = [_group(group) for group in _groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if len(parts) == 2 and parts[0] == "apis" and parts[1] in _groups():
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts == ("api", "v1"):
        return _resource_list("", "v1")
    if len(parts) == 3 and parts[0] == "apis" and parts[1] in _groups() and parts[2] == "v1":
        return _resource_list(parts[1], f"{parts[1]}/v1")
    return None


def _subresources(resource: Resource) -> tuple[str, ...]:
    return (*resource.subresources, "status") if resource.status else resource.subresources


def _groups() -> list[str]:
    return sorted({resource.group for resource in RESOURCES if resource.group} | REVIEWS.keys())


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource_list(group: str, group_version: str) -> dict[str, Any]:
    listed: list[dict[str, Any]] = [_review(REVIEWS[group])] if group in REVIEWS else []
    for resource in RESOURCES:
        if resource.group == group:
            listed.append(_described(resource))
            listed += [
                {
                    **_described(resource),
                    "name": f"{resource.plural}/{sub}",
                    "verbs": ["get", "patch", "update"],
                }
                for sub in _subresources(resource)
            ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _review(kind: str) -> dict[str, Any]:
    name = kind.lower()
    return {"name": f"{name}s", "singularName": name, "namespaced": False, "kind": kind, "verbs": ["create"]}


def _described(resource: Resource) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    return {**described, "shortNames": list(resource.short_names)} if resource.short_names else described
