"""The rights that the portal needs on a cluster, and the objects that grant them: one source for page, docs and tests.

Reading goes over the whole cluster, because pods of others take room on the nodes too. Writing is granted in the
namespaces of teams alone. There is no right here on secrets, on nodes' specs, on bindings or to run commands in pods;
a portal that is broken into can stop and start GPU jobs, and nothing else.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clusters.manifests.adapters import born_pinned, pod_group
from clusters.manifests.values import Json

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "muster"
NAMESPACE = "muster-system"
READER_ROLE = "muster-reader"
TEAM_ROLE = "muster-team"
POLICY_ROLE = "muster-policy"
GROUPS_ROLE = "muster-groups"
RENEWAL_ROLE = "muster-token"
SPACES_ROLE = "muster-spaces"
SPACE_ROLE = "muster-space"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on kinds of one API group ("" is the core group); with `names` only on the objects of these names."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def rule(self) -> Json:
        """As a rule of a role."""
        names = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), **names, "verbs": list(self.verbs)}

    def acts(self, namespace: str = "") -> Iterator["Act"]:
        """Yield each single act that it allows, in one namespace or ("") in all of them."""
        for resource in self.resources:
            for verb in self.verbs:
                for name in self.names or ("",):
                    yield Act(namespace, self.group, resource, verb, name)


@dataclass(frozen=True, slots=True, order=True)
class Act:
    """One verb on one kind, as an API server is asked about it. "" stands for all namespaces, and for any name."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str = ""

    def attributes(self) -> Json:
        """As a review of access asks."""
        resource, _slash, subresource = self.resource.partition("/")
        return {
            "namespace": self.namespace,
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "name": self.name,
        }


EVERYWHERE = (
    Right("", ("nodes", "pods", "events", "persistentvolumeclaims"), _READ),
    Right("batch", ("jobs", "cronjobs"), _READ),
    Right("apps", ("deployments", "statefulsets"), _READ),
)
IN_TEAMS = (
    Right("batch", ("jobs", "cronjobs"), ("create", "patch", "delete")),
    Right("apps", ("deployments",), ("create", "patch", "delete")),
    Right("apps", ("statefulsets",), ("create", "delete")),
    Right("", ("pods",), ("create", "patch", "delete")),
    Right("", ("pods/log",), ("get",)),
    Right("", ("services",), ("create", "get", "delete")),
)
# Only for a cluster that pins pods at their creation: to see that its policy is there, and is ours.
POLICY = tuple(
    Right("admissionregistration.k8s.io", (kind,), ("get",), names=(born_pinned.NAME,))
    for kind in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
)
# In the namespace of each team, only where the cluster's scheduler binds gangs whole: each goes with the Job it is of.
IN_GROUPS = (Right("scheduling.k8s.io", (pod_group.RESOURCE,), ("create", "get")),)

# Only where the portal looks after the spaces of teams: to see them all, each kind in one list.
SPACES = (
    Right("", ("namespaces", "resourcequotas", "limitranges"), ("list",)),
    Right("networking.k8s.io", ("networkpolicies",), ("list",)),
    Right("scheduling.k8s.io", ("priorityclasses",), ("list",)),
    Right(
        "admissionregistration.k8s.io",
        ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        ("list",),
    ),
)
# In the namespace of each team, to keep them. Roles are not among them: who may bind one in any namespace may do all.
IN_SPACES = (
    Right("", ("resourcequotas", "limitranges"), ("create", "patch")),
    Right("networking.k8s.io", ("networkpolicies",), ("create", "patch")),
)


def keeping(namespaces: Iterable[str], rungs: Iterable[str]) -> tuple[Right, ...]:
    """What is written outside of the teams' namespaces: their labels, and the priority classes of these names."""
    rights = [Right("scheduling.k8s.io", ("priorityclasses",), ("create",))]
    if names := tuple(sorted(namespaces)):
        rights.append(Right("", ("namespaces",), ("patch",), names=names))
    if names := tuple(sorted(rungs)):
        rights.append(Right("scheduling.k8s.io", ("priorityclasses",), ("patch", "delete"), names=names))
    return tuple(rights)


def renewal(account: str = ACCOUNT) -> Right:
    """What lets the account renew its own token, and no other one's: where it is granted, tokens may be short."""
    return Right("", ("serviceaccounts/token",), ("create",), names=(account,))


def objects(
    namespaces: Iterable[str] = (), *, with_policy: bool = False, with_renewal: bool = False, with_groups: bool = False
) -> list[Json]:
    """What a cluster's administrator creates, in this order; `namespaces` are those of teams, and exist already.

    `with_policy` adds the right to look at the policy that pins pods, `with_renewal` the one to renew our own token,
    `with_groups` the one to make PodGroups.
    """
    teams = list(namespaces)
    policy = _everywhere(POLICY_ROLE, POLICY) if with_policy else []
    renewing = _role_of_our_own(RENEWAL_ROLE, [renewal()]) if with_renewal else []
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        _cluster_role(TEAM_ROLE, IN_TEAMS),
        *_everywhere(READER_ROLE, EVERYWHERE, urls=("/version", "/readyz")),
        *policy,
        *renewing,
        *(team_binding(namespace) for namespace in teams),
        *(for_groups(teams) if with_groups else ()),
    ]


def for_groups(namespaces: Iterable[str]) -> list[Json]:
    """What lets the portal make PodGroups in the namespaces of teams."""
    return [_cluster_role(GROUPS_ROLE, IN_GROUPS), *(_binding(GROUPS_ROLE, each) for each in namespaces)]


def for_spaces(namespaces: Sequence[str], rungs: Iterable[str]) -> list[Json]:
    """What lets the portal look after the spaces of teams; their namespaces exist already."""
    return [
        *_everywhere(SPACES_ROLE, (*SPACES, *keeping(namespaces, rungs))),
        _cluster_role(SPACE_ROLE, IN_SPACES),
        *(space_binding(namespace) for namespace in namespaces),
    ]


def grants(missing: Iterable[Act], user: str) -> list[Json]:
    """Roles and bindings that give the user exactly these acts, and take or change nothing that is there.

    Each role is named after what it holds: what is missing another day becomes another role.
    """
    by_namespace: dict[str, list[Act]] = defaultdict(list)
    for act in sorted(set(missing)):
        by_namespace[act.namespace].append(act)
    return [body for namespace, acts in by_namespace.items() for body in _granted(namespace, acts, user)]


def _granted(namespace: str, acts: Sequence[Act], user: str) -> Iterator[Json]:
    rules = _rules(acts)
    name = f"muster-missing-{hashlib.sha256(json.dumps(rules).encode()).hexdigest()[:8]}"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    kind = "Role" if namespace else "ClusterRole"
    yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [subject_of(user)],
    }


def _rules(acts: Iterable[Act]) -> list[Json]:
    """One rule for all kinds of a group that lack the same verbs."""
    verbs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for act in acts:
        verbs[act.group, act.name, act.resource].append(act.verb)
    kinds: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, name, resource), found in verbs.items():
        kinds[group, name, tuple(found)].append(resource)
    return [
        Right(group, tuple(resources), found, names=(name,) if name else ()).rule()
        for (group, name, found), resources in kinds.items()
    ]


def service_account(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account behind a user name; None for any other user."""
    namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, name) if user.startswith(_SERVICE_ACCOUNT) and colon else None


def subject_of(user: str) -> Json:
    """The user as the subject of a binding."""
    account = service_account(user)
    if account is None:
        return {"apiGroup": RBAC, "kind": "User", "name": user}
    return {"kind": "ServiceAccount", "name": account[1], "namespace": account[0]}


def team_binding(namespace: str) -> Json:
    """What lets the portal work in one more namespace."""
    return _binding(TEAM_ROLE, namespace)


def space_binding(namespace: str) -> Json:
    """What lets the portal keep the space around it."""
    return _binding(SPACE_ROLE, namespace)


def _binding(role: str, namespace: str) -> Json:
    metadata = {"name": role, "namespace": namespace}
    return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, **_grant(role)}


def _cluster_role(name: str, rights: Sequence[Right], *, urls: Sequence[str] = ()) -> Json:
    rules = [right.rule() for right in rights]
    if urls:
        rules.append({"nonResourceURLs": list(urls), "verbs": ["get"]})
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _everywhere(name: str, rights: Sequence[Right], *, urls: Sequence[str] = ()) -> list[Json]:
    """A role that is granted over the whole cluster."""
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, **_grant(name)}
    return [_cluster_role(name, rights, urls=urls), binding]


def _role_of_our_own(name: str, rights: Sequence[Right]) -> list[Json]:
    """A role in the namespace of our own account."""
    metadata = {"name": name, "namespace": NAMESPACE}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [each.rule() for each in rights]}
    return [role, {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, **_grant(name, "Role")}]


def _grant(role: str, kind: str = "ClusterRole") -> Json:
    return {
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
