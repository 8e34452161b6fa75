"""The rights that the portal needs on a cluster, and the objects that grant them: one source for page, docs and tests.

Reading goes over the whole cluster, because pods of others take room on the nodes too. Writing is granted in the
namespaces of teams alone. There is no right here on secrets, on nodes' specs, on bindings or to run commands in pods;
a portal that is broken into can stop and start GPU jobs, and nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusters.manifests.values import Json

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "muster"
NAMESPACE = "muster-system"
READER_ROLE = "muster-reader"
TEAM_ROLE = "muster-team"
_READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on kinds of one API group ("" is the core group)."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    def rule(self) -> Json:
        """As a rule of a role."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


EVERYWHERE = (
    Right("", ("nodes", "pods", "events", "persistentvolumeclaims"), _READ),
    Right("batch", ("jobs",), _READ),
    Right("apps", ("deployments",), _READ),
)
IN_TEAMS = (
    Right("batch", ("jobs",), ("create", "patch", "delete")),
    Right("apps", ("deployments",), ("create", "patch", "delete")),
    Right("", ("pods",), ("patch", "delete")),
    Right("", ("pods/log",), ("get",)),
    Right("", ("services",), ("create", "get")),
)


def objects(namespaces: Iterable[str] = ()) -> list[Json]:
    """What a cluster's administrator creates, in this order; `namespaces` are those of teams, and exist already."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        _cluster_role(READER_ROLE, EVERYWHERE, urls=("/version", "/readyz")),
        _cluster_role(TEAM_ROLE, IN_TEAMS),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": READER_ROLE},
            **_grant(READER_ROLE),
        },
        *(team_binding(namespace) for namespace in namespaces),
    ]


def team_binding(namespace: str) -> Json:
    """What lets the portal work in one more namespace."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": TEAM_ROLE, "namespace": namespace},
        **_grant(TEAM_ROLE),
    }


def _cluster_role(name: str, rights: Sequence[Right], *, urls: Sequence[str] = ()) -> Json:
    rules = [right.rule() for right in rights]
    if urls:
        rules.append({"nonResourceURLs": list(urls), "verbs": ["get"]})
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _grant(role: str) -> Json:
    return {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
