"""Rows for tests, made with sensible defaults. Every call makes a new row; names count up."""

from itertools import count
from typing import Any

from clusters.models import Cluster, Node, NodeAccelerator, ResourceFlavor
from jobs.models import Job
from portal.core import clock
from portal.identity.models import Membership, Organization, Team, User
from quotas.models import Cohort, PriorityClass, Queue, Quota

PASSWORD = "correct horse battery"
_number = count(1)


def make_user(username: str = "", **fields: Any) -> User:
    """Make a person who can sign in with PASSWORD."""
    name = username or f"person{next(_number)}"
    password = fields.pop("password", PASSWORD)
    return User.objects.create_user(name, fields.pop("email", f"{name}@example.com"), password, **fields)


def make_organization(name: str = "Acme") -> Organization:
    """Return the organization of that name."""
    return Organization.objects.get_or_create(slug=name.lower(), defaults={"name": name})[0]


def make_team(slug: str = "", *, organization: Organization | None = None) -> Team:
    """Make a team without members."""
    slug = slug or f"team{next(_number)}"
    organization = organization or make_organization()
    return Team.objects.create(organization=organization, name=slug.title(), slug=slug, namespace=slug)


def make_membership(user: User, team: Team, role: str = Membership.Role.MEMBER) -> Membership:
    """Put a person into a team."""
    return Membership.objects.create(user=user, team=team, role=role)


def make_flavor(name: str = "", **fields: Any) -> ResourceFlavor:
    """Make a flavor whose nodes carry its name as their GPU product."""
    name = name or f"gpu{next(_number)}"
    values = {"title": name.upper(), "label_value": name.upper(), "memory_mib": 81_920, **fields}
    return ResourceFlavor.objects.create(name=name, **values)


def make_cohort(name: str = "", *, parent: Cohort | None = None) -> Cohort:
    """Make a cohort without a cap."""
    return Cohort.objects.create(name=name or f"cohort{next(_number)}", parent=parent, organization=make_organization())


def make_queue(
    team: Team, *, cohort: Cohort | None = None, quota: dict[ResourceFlavor, int] | None = None, **fields: Any
) -> Queue:
    """Make a queue; the first of a team is its default one. `quota` gives GPUs by flavor."""
    first = not team.queues.exists()
    values = {"name": f"{team.slug}-{next(_number)}", "is_default": first, **fields}
    queue = Queue.objects.create(team=team, cohort=cohort or make_cohort(), **values)
    for flavor, gpus in (quota or {}).items():
        Quota.objects.create(queue=queue, flavor=flavor, nominal=gpus)
    return queue


def make_priority_class(name: str = "normal", value: int = 1_000, **fields: Any) -> PriorityClass:
    """Return the priority class of that name; made anew it is open to every team."""
    values = {"value": value, "is_open": True, **fields}
    return PriorityClass.objects.get_or_create(name=name, defaults=values)[0]


def make_cluster(name: str = "", **fields: Any) -> Cluster:
    """Make a cluster that was heard of just now."""
    now = clock.now()
    values = {"server": "http://127.0.0.1:1", "is_simulated": True, "heard_at": now, "synced_at": now, **fields}
    return Cluster.objects.create(name=name or f"cluster{next(_number)}", **values)


def make_node(
    cluster: Cluster, *, flavor: ResourceFlavor | None = None, gpus: int = 8, name: str = "", **fields: Any
) -> Node:
    """Make a ready node; with a flavor it has `gpus` of it, all free."""
    name = name or f"node{next(_number)}"
    values = {
        "uid": f"uid-{name}",
        "is_ready": True,
        "cpu_milli": 96_000,
        "memory_mib": 1_048_576,
        "pods": 110,
        **fields,
    }
    node = Node.objects.create(cluster=cluster, name=name, **values)
    if flavor is not None:
        NodeAccelerator.objects.create(node=node, flavor=flavor, capacity=gpus, allocatable=gpus)
    return node


def make_job(team: Team, owner: User, *, queue: Queue | None = None, **fields: Any) -> Job:
    """Make a queued training job of one worker with one GPU, in the team's default queue unless told otherwise."""
    queue = queue or team.queues.filter(is_default=True).first() or make_queue(team)
    priority_class = fields.pop("priority_class", None) or make_priority_class()
    workers, per_worker = fields.get("workers", 1), fields.get("gpus_per_worker", 1)
    values = {
        "name": "train",
        "number": next(_number),
        "kind": Job.Kind.TRAINING,
        "workload": "job",
        "spec": {},
        "priority": priority_class.value,
        "workers": workers,
        "min_workers": workers,
        "gpus_per_worker": per_worker,
        "gpus": workers * per_worker,
        "cpu_milli": 4_000,
        "memory_mib": 16_384,
        **fields,
    }
    return Job.objects.create(team=team, owner=owner, queue=queue, priority_class=priority_class, **values)
