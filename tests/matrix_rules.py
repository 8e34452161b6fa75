"""What every address answers to whom. An address without an entry in RULES fails the matrix: nothing is open of itself.

To add a page: give its URL name a Rule that says, by method, which access it has. Methods that are not named must
refuse everybody. `own` gives the address of an object of team vision (Alice owns the team, Bob is a member, Victor
a viewer; Charlie owns another team; the administrator is in none), `missing` the address of an object that never was:
who may not see the first must get the same answer, to the letter, as for the second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clusters.models import Cluster, Node, ResourceFlavor
from jobs.models import Job
from portal.core.audit import SYSTEM
from portal.identity.models import ApiToken, Invitation, Team, User
from portal.identity.services.invitations import invite
from portal.identity.services.tokens import create_token
from quotas.models import Queue, Space
from tests.factories import (
    make_cluster,
    make_flavor,
    make_job,
    make_membership,
    make_node,
    make_organization,
    make_queue,
    make_team,
    make_user,
)

# The words of the matrix. OPEN: the person got past the permissions, be it to a refusal of what they typed.
OPEN, SIGN_IN, FORBIDDEN, MISSING = "open", "sign in", "forbidden", "missing"
Access = Mapping[str, str]
Arguments = dict[str, Any]

EVERYBODY: Access = dict.fromkeys(("visitor", "alice", "bob", "victor", "charlie", "admin"), OPEN)
NOBODY: Access = dict.fromkeys(EVERYBODY, MISSING)
PEOPLE: Access = {**EVERYBODY, "visitor": SIGN_IN}
VIEWERS: Access = {**PEOPLE, "charlie": MISSING}
MEMBERS: Access = {**VIEWERS, "victor": FORBIDDEN}  # and administrators
SUBMITTERS: Access = {**PEOPLE, "victor": FORBIDDEN, "admin": FORBIDDEN}  # a stranger is told of an unknown team
OWNERS: Access = {**MEMBERS, "bob": FORBIDDEN}  # and administrators
ADMINISTRATORS: Access = {**dict.fromkeys(PEOPLE, FORBIDDEN), "visitor": SIGN_IN, "admin": OPEN}
ALICE_ALONE: Access = {**dict.fromkeys(PEOPLE, MISSING), "visitor": SIGN_IN, "alice": OPEN}


@dataclass(frozen=True)
class World:
    """The rows that the addresses name: all belong to Alice or to her team."""

    people: dict[str, User]
    team: Team
    queue: Queue
    flavor: ResourceFlavor
    cluster: Cluster
    node: Node
    job: Job
    token: ApiToken
    invitation: Invitation
    space: Space

    @property
    def alice(self) -> User:
        return self.people["alice"]


@dataclass(frozen=True)
class Rule:
    """Access by method, and how to ask."""

    access: Mapping[str, Access]
    own: Callable[[World], Arguments] = field(default=lambda _world: {})
    missing: Callable[[World], Arguments] | None = None
    data: Callable[[World], Arguments] = field(default=lambda _world: {})


def make_world() -> World:
    """Make the rows of the matrix."""
    team, other = make_team("vision"), make_team("speech", organization=make_organization("Elsewhere"))
    people = {name: make_user(name) for name in ("alice", "bob", "victor", "charlie")}
    people["admin"] = make_user("admin", is_superuser=True)
    for name, role in (("alice", "owner"), ("bob", "member"), ("victor", "viewer")):
        make_membership(people[name], team, role)
    make_membership(people["charlie"], other, "owner")
    flavor = make_flavor("h100")
    queue = make_queue(team, quota={flavor: 8})
    cluster = make_cluster("north")
    return World(
        people=people,
        team=team,
        queue=queue,
        flavor=flavor,
        cluster=cluster,
        node=make_node(cluster, flavor=flavor, name="n1"),
        job=make_job(team, people["bob"]),
        token=create_token(actor=SYSTEM, user=people["alice"], name="laptop", days=1)[0],
        invitation=invite(actor=SYSTEM, team=team, email="x@example.com", role="member", link_to=str).invitation,
        space=Space.objects.create(cluster=cluster, team=team),
    )


def page(access: Access, **more: Any) -> Rule:
    """A page to read."""
    return Rule({"GET": access}, **more)


def form(access: Access, **more: Any) -> Rule:
    """A page that also takes its own form."""
    return Rule({"GET": access, "POST": access}, **more)


def act(access: Access, **more: Any) -> Rule:
    """An address that is posted to."""
    return Rule({"POST": access}, **more)


NOT_THERE = 999_999_999
NO_TEAM = {"missing": lambda _world: {"slug": "no-such-team"}}
OF_TEAM: dict[str, Any] = {"own": lambda world: {"slug": world.team.slug}, **NO_TEAM}
OF_BOB: dict[str, Any] = {
    "own": lambda world: {"slug": world.team.slug, "user_id": world.people["bob"].pk},
    "missing": lambda world: {"slug": "no-such-team", "user_id": world.people["bob"].pk},
}
OF_INVITATION: dict[str, Any] = {
    "own": lambda world: {"slug": world.team.slug, "invitation_id": world.invitation.pk},
    "missing": lambda world: {"slug": "no-such-team", "invitation_id": world.invitation.pk},
}
OF_PERSON: dict[str, Any] = {"own": lambda world: {"user_id": world.people["bob"].pk}}
OF_TOKEN: dict[str, Any] = {
    "own": lambda world: {"token_key": world.token.token_key},
    "missing": lambda _world: {"token_key": "muster_00000000"},
}
OF_QUEUE: dict[str, Any] = {
    "own": lambda world: {"queue_id": world.queue.pk},
    "missing": lambda _world: {"queue_id": NOT_THERE},
}
OF_RUNG: dict[str, Any] = {
    "own": lambda world: {"pk": world.job.priority_class_id},
    "missing": lambda _world: {"pk": NOT_THERE},
}
OF_BRANCH: dict[str, Any] = {
    "own": lambda world: {"kind": "queue", "pk": world.queue.pk},
    "missing": lambda _world: {"kind": "queue", "pk": NOT_THERE},
}
OF_QUOTA: dict[str, Any] = {
    "own": lambda world: {"kind": "queue", "pk": world.queue.pk, "flavor_id": world.flavor.pk},
    "missing": lambda world: {"kind": "queue", "pk": NOT_THERE, "flavor_id": world.flavor.pk},
}
OF_LEAF: dict[str, Any] = {
    "own": lambda world: {"pk": world.queue.pk},
    "missing": lambda _world: {"pk": NOT_THERE},
}
OF_SHARE: dict[str, Any] = {
    "own": lambda world: {"pk": world.queue.quotas.get().pk},
    "missing": lambda _world: {"pk": NOT_THERE},
}
OF_JOB: dict[str, Any] = {
    "own": lambda world: {"uid": world.job.uid},
    "missing": lambda _world: {"uid": "zzzzzzzzzzzz"},
}
OF_CLUSTER: dict[str, Any] = {
    "own": lambda world: {"name": world.cluster.name},
    "missing": lambda _world: {"name": "no-such-cluster"},
}
OF_NODE: dict[str, Any] = {
    "own": lambda world: {"cluster_name": world.cluster.name, "name": world.node.name},
    "missing": lambda world: {"cluster_name": world.cluster.name, "name": "no-such-node"},
}
OF_NODE_ID: dict[str, Any] = {
    "own": lambda world: {"pk": world.node.pk},
    "missing": lambda _world: {"pk": NOT_THERE},
}
OF_FLAVOR: dict[str, Any] = {
    "own": lambda world: {"pk": world.flavor.pk},
    "missing": lambda _world: {"pk": NOT_THERE},
}

OF_SPACE: dict[str, Any] = {
    "own": lambda world: {"pk": world.space.pk},
    "missing": lambda _world: {"pk": NOT_THERE},
}

RULES: dict[str, Rule] = {
    "healthz": page(EVERYBODY),
    "readyz": page(EVERYBODY),
    "home": page(PEOPLE),
    "live": page(NOBODY),  # no topic is named; the tests of the stream name some
    # --- jobs -----------------------------------------------------------------------------------
    "jobs:new_training": Rule({"GET": PEOPLE, "POST": SUBMITTERS}),
    "jobs:new_service": Rule({"GET": PEOPLE, "POST": SUBMITTERS}),
    "jobs:convert": act(SUBMITTERS),
    "jobs:preview": act(SUBMITTERS),
    "jobs:manifest": act(SUBMITTERS),
    "jobs:list": page(PEOPLE),
    "jobs:services": page(PEOPLE),
    "jobs:list_csv": page(PEOPLE),
    "jobs:services_csv": page(PEOPLE),
    "jobs:incidents": page(PEOPLE),
    "jobs:incidents_csv": page(PEOPLE),
    "jobs:cancel_selected": act(PEOPLE),  # each job is asked for by itself
    "jobs:label_selected": act(PEOPLE),
    "jobs:detail": page(VIEWERS, **OF_JOB),
    "jobs:again": act({**MEMBERS, "admin": FORBIDDEN}, **OF_JOB),
    "jobs:cancel": act(MEMBERS, **OF_JOB),
    "jobs:pause": act(MEMBERS, **OF_JOB),
    "jobs:scale": act(MEMBERS, **OF_JOB),
    "job_logs": page(VIEWERS, **OF_JOB),
    # --- people ---------------------------------------------------------------------------------
    "identity:sign_in": form(EVERYBODY),
    "identity:sign_out": act(EVERYBODY),
    "identity:password_reset": form(EVERYBODY),
    "identity:password_reset_sent": page(EVERYBODY),
    "identity:password_reset_confirm": form(EVERYBODY, own=lambda _world: {"uidb64": "MQ", "token": "x-y"}),
    "identity:invitation": page(EVERYBODY, own=lambda _world: {"secret": "unknown"}),
    "identity:answer_invitation": form(NOBODY),  # it was not opened by a link
    "identity:password": form(PEOPLE),
    "identity:profile": form(PEOPLE),
    "identity:theme": act(PEOPLE),
    "identity:tokens": form(PEOPLE),
    "identity:revoke_token": act(ALICE_ALONE, **OF_TOKEN),
    "identity:switch_team": act({**VIEWERS, "admin": MISSING}, data=lambda world: {"team": world.team.pk}),
    "identity:teams": page(PEOPLE),
    "identity:team": page(VIEWERS, **OF_TEAM),
    "identity:invite": act(OWNERS, **OF_TEAM),
    "identity:revoke_invitation": act(OWNERS, **OF_INVITATION),
    "identity:change_role": act(OWNERS, **OF_BOB),
    "identity:remove_member": act({**OWNERS, "bob": OPEN}, **OF_BOB),  # Bob leaves
    "identity:audit": page({**PEOPLE, "bob": FORBIDDEN, "victor": FORBIDDEN}),
    "identity:people": page(ADMINISTRATORS),
    "identity:set_active": act(ADMINISTRATORS, **OF_PERSON),
    "identity:set_administrator": act(ADMINISTRATORS, **OF_PERSON),
    "identity:new_team": form(ADMINISTRATORS, data=lambda _world: {"organization": make_organization().pk}),
    "identity:new_organization": form(ADMINISTRATORS),
    # --- supply: open to everybody signed in -------------------------------------------------------
    "clusters:list": page(PEOPLE),
    "clusters:detail": page(PEOPLE, **OF_CLUSTER),
    "clusters:node": page(PEOPLE, **OF_NODE),
    "clusters:fleet": page(PEOPLE),
    "clusters:quarantine": act(ADMINISTRATORS, **OF_NODE),
    "clusters:release": act(ADMINISTRATORS, **OF_NODE),
    "clusters:maintenance": act(ADMINISTRATORS, **OF_NODE),
    "clusters:end_maintenance": act(ADMINISTRATORS, **OF_NODE),
    "clusters:new": form(ADMINISTRATORS),
    "clusters:edit": form(ADMINISTRATORS, **OF_CLUSTER),
    "clusters:levels": form(ADMINISTRATORS, **OF_CLUSTER),
    "clusters:ask_checks": act(ADMINISTRATORS, **OF_CLUSTER),
    "clusters:flavors": form(ADMINISTRATORS),
    "clusters:flavor": form(ADMINISTRATORS, **OF_FLAVOR),
    "clusters:remove_flavor": act(ADMINISTRATORS, **OF_FLAVOR),
    # --- quotas ---------------------------------------------------------------------------------
    "quotas:queues": page(PEOPLE),
    "quotas:queue": page(VIEWERS, **OF_QUEUE),
    "quotas:console": page(ADMINISTRATORS),
    "quotas:add_cohort": act(ADMINISTRATORS),
    "quotas:add_queue": act(ADMINISTRATORS),
    "quotas:add_priority": act(ADMINISTRATORS),
    "quotas:priority": form(ADMINISTRATORS, **OF_RUNG),
    "quotas:grant_priority": act(ADMINISTRATORS, **OF_RUNG),
    "quotas:remove_priority": act(ADMINISTRATORS, **OF_RUNG),
    "quotas:quota": form(ADMINISTRATORS, **OF_QUOTA),
    "quotas:rename": act(ADMINISTRATORS, **OF_BRANCH),
    "quotas:remove": act(ADMINISTRATORS, **OF_BRANCH),
    "quotas:pause": act(ADMINISTRATORS, **OF_LEAF),
    "quotas:make_default": act(ADMINISTRATORS, **OF_LEAF),
    "quotas:spaces": page(ADMINISTRATORS, **OF_CLUSTER),
    "quotas:apply_space": act(ADMINISTRATORS, **OF_CLUSTER),
    "quotas:keep_spaces": act(ADMINISTRATORS, **OF_CLUSTER),
    "quotas:guard_spaces": act(ADMINISTRATORS, **OF_CLUSTER),
    # --- REST -----------------------------------------------------------------------------------
    "api:schema": page(EVERYBODY),
    "api:docs": page(EVERYBODY),
    "api:teams-list": page(PEOPLE),
    "api:teams-detail": page(VIEWERS, **OF_TEAM),
    "api:teams-members": page(VIEWERS, **OF_TEAM),
    "api:tokens-list": form(PEOPLE),
    "api:tokens-detail": Rule({"DELETE": ALICE_ALONE}, **OF_TOKEN),
    "api:space-list": page(PEOPLE),
    "api:space-detail": page(VIEWERS, **OF_SPACE),
    "api:space-apply": act(ADMINISTRATORS, **OF_SPACE),
    "api:jobs-list": Rule({"GET": PEOPLE, "POST": SUBMITTERS}, data=lambda world: {"team": world.team.slug}),
    "api:jobs-batch": act(PEOPLE),
    "api:jobs-detail": page(VIEWERS, **OF_JOB),
    "api:jobs-events": page(VIEWERS, **OF_JOB),
    "api:jobs-metrics": page(VIEWERS, **OF_JOB),
    "api:jobs-cancel": act(MEMBERS, **OF_JOB),
    "api:jobs-pause": act(MEMBERS, **OF_JOB),
    "api:jobs-scale": act(MEMBERS, **OF_JOB),
    "api:preview-list": act(SUBMITTERS, data=lambda world: {"team": world.team.slug}),
    "api:templates-list": page(PEOPLE),
    "api:templates-detail": page(PEOPLE, own=lambda _world: {"name": "http-model-server"}),
    "api:queue-list": page(PEOPLE),
    "api:queue-detail": page(VIEWERS, **OF_LEAF),
    "api:quota-list": page(PEOPLE),
    "api:quota-detail": Rule({"GET": VIEWERS, "PATCH": ADMINISTRATORS}, **OF_SHARE),
    "api:priority-class-list": Rule({"GET": PEOPLE, "POST": ADMINISTRATORS}),
    "api:priority-class-detail": Rule(
        {"GET": PEOPLE, "PATCH": ADMINISTRATORS, "DELETE": ADMINISTRATORS},
        own=lambda world: {"name": world.job.priority_class.name},
        missing=lambda _world: {"name": "no-such-rung"},
    ),
    "api:clusters-list": Rule({"GET": PEOPLE, "POST": ADMINISTRATORS}),
    "api:clusters-detail": Rule({"GET": PEOPLE, "PATCH": ADMINISTRATORS}, **OF_CLUSTER),
    "api:clusters-levels": Rule({"PUT": ADMINISTRATORS}, **OF_CLUSTER),
    "api:clusters-probe": Rule({"GET": PEOPLE, "POST": ADMINISTRATORS}, **OF_CLUSTER),
    "api:nodes-list": page(PEOPLE),
    "api:nodes-detail": page(PEOPLE, own=lambda world: {"pk": world.node.pk}, missing=lambda _world: {"pk": NOT_THERE}),
    "api:nodes-faults": page(PEOPLE, **OF_NODE_ID),
    "api:nodes-quarantine": Rule({"POST": ADMINISTRATORS, "DELETE": ADMINISTRATORS}, **OF_NODE_ID),
    "api:nodes-maintenance": Rule({"GET": PEOPLE, "POST": ADMINISTRATORS, "DELETE": ADMINISTRATORS}, **OF_NODE_ID),
    "api:incidents-list": page(PEOPLE),
    "api:flavors-list": Rule({"GET": PEOPLE, "POST": ADMINISTRATORS}),
    "api:flavors-detail": Rule(
        {"GET": PEOPLE, "PATCH": ADMINISTRATORS, "DELETE": ADMINISTRATORS},
        own=lambda world: {"name": world.flavor.name},
        missing=lambda _world: {"name": "no-such-flavor"},
    ),
    "api:capacity-list": page(PEOPLE),
}
