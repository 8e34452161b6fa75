"""The demo's organization: people, teams, quotas, priorities. Running it again changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import Manager, Model

from clusters.models import ResourceFlavor
from portal.identity.models import Membership, Organization, Team, User
from quotas.models import Cohort, PriorityClass, PriorityGrant, Queue, Quota
from quotas.policy.ladder import default_ladder

Row = TypeVar("Row", bound=Model)

ORGANIZATION = "acme"
# Known to everyone who reads this: the demo listens on the loopback interface alone.
PASSWORD = "muster-demo-2026"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Login:
    """One person of the demo."""

    user: str
    role: str
    password: str = PASSWORD


@dataclass(frozen=True, slots=True)
class Flavor:
    """One class of the demo's nodes. Links as the maker states them; prices of one GPU-hour are made up."""

    name: str
    title: str
    label_value: str
    memory_mib: int
    link: str
    rank: int
    price_cents: int


LOGINS = (
    Login("alice", "owner of team vision"),
    Login("bob", "member of team vision"),
    Login("charlie", "owner of team speech"),
    Login("admin", "platform administrator"),
)
MEMBERSHIPS = (
    ("alice", "vision", Membership.Role.OWNER),
    ("bob", "vision", Membership.Role.MEMBER),
    ("charlie", "speech", Membership.Role.OWNER),
    ("admin", "platform", Membership.Role.OWNER),
)
TEAMS = {"vision": "Vision", "speech": "Speech", "platform": "Platform"}
FLAVORS = (
    Flavor("h100", "H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3", 81_559, "NVLink 900 GB/s", 10, 290),
    Flavor("a100", "A100 SXM4 80GB", "NVIDIA-A100-SXM4-80GB", 81_920, "NVLink 600 GB/s", 20, 170),
    Flavor("l40s", "L40S 48GB", "NVIDIA-L40S", 46_068, "PCIe 64 GB/s", 30, 95),
)
# Whole GPUs by flavor: the two research teams share a cohort that holds less than the sum of what they might ask for.
COHORT_QUOTA = {
    "acme": {"h100": 256, "a100": 128, "l40s": 128},
    "research": {"h100": 192, "a100": 96, "l40s": 64},
}
QUEUE_QUOTA = {
    "vision": {"h100": 112, "a100": 48, "l40s": 32},
    "speech": {"h100": 64, "a100": 48, "l40s": 32},
    "platform": {"h100": 64, "a100": 32, "l40s": 64},
}


@transaction.atomic
def make_organisation() -> bool:
    """Make the demo's organization, and return whether it was new: what people changed in an old one stays."""
    if Organization.objects.filter(slug=ORGANIZATION).exists():
        return False
    organization = Organization.objects.create(slug=ORGANIZATION, name="Acme")
    flavors = _rows(ResourceFlavor.objects, "name", [asdict(flavor) for flavor in FLAVORS])
    teams = _rows(Team.objects, "slug", [_team(organization, slug, name) for slug, name in TEAMS.items()])
    _make_people(teams)
    _make_quotas(organization, teams, flavors)
    _make_ladder(teams["platform"])
    return True


def _rows(manager: Manager[Row], key: str, wanted: Sequence[Mapping[str, object]]) -> dict[str, Row]:
    """Return the wanted rows by their key; those that are missing are made, all at once."""
    names = [values[key] for values in wanted]
    rows: dict[str, Row] = {getattr(row, key): row for row in manager.filter(**{f"{key}__in": names})}
    new = [manager.model(**values) for values in wanted if values[key] not in rows]
    return rows | {getattr(row, key): row for row in manager.bulk_create(new)}


def _team(organization: Organization, slug: str, name: str) -> dict[str, object]:
    return {"organization": organization, "slug": slug, "name": name, "namespace": f"team-{slug}"}


def _make_people(teams: Mapping[str, Team]) -> None:
    # One hash for all: it is slow by intention, and everybody knows the password anyway.
    password = make_password(PASSWORD)
    logins = [
        {
            "username": login.user,
            "email": f"{login.user}@acme.example",
            "is_superuser": login.user == "admin",
            "password": password,
        }
        for login in LOGINS
    ]
    people = _rows(User.objects, "username", logins)
    Membership.objects.bulk_create(
        Membership(user=people[name], team=teams[slug], role=role) for name, slug, role in MEMBERSHIPS
    )


def _make_quotas(organization: Organization, teams: Mapping[str, Team], flavors: Mapping[str, ResourceFlavor]) -> None:
    root = Cohort.objects.create(name="acme", organization=organization)
    research = Cohort.objects.create(name="research", organization=organization, parent=root)
    queues = Queue.objects.bulk_create(
        Queue(name=slug, team=team, cohort=root if slug == "platform" else research, is_default=True)
        for slug, team in teams.items()
    )
    owners: list[tuple[str, Cohort | Queue, Mapping[str, int]]] = []
    owners += [("cohort", row, COHORT_QUOTA[row.name]) for row in (root, research)]
    owners += [("queue", row, QUEUE_QUOTA[row.name]) for row in queues]
    Quota.objects.bulk_create(
        Quota(**{kind: row}, flavor=flavors[name], nominal=gpus)
        for kind, row, quota in owners
        for name, gpus in quota.items()
    )


def _make_ladder(platform: Team) -> None:
    rungs = default_ladder()
    rows = _rows(PriorityClass.objects, "name", [asdict(rung) for rung in rungs])
    PriorityGrant.objects.bulk_create(
        PriorityGrant(priority_class=rows[rung.name], team=platform) for rung in rungs if not rung.is_open
    )
