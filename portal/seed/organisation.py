"""The demo's organization: people, teams, quotas, priorities. Running it again changes nothing."""

from dataclasses import asdict, dataclass

from django.db import transaction

from clusters.models import ResourceFlavor
from portal.identity.models import Membership, Organization, Team, User
from quotas.models import Cohort, PriorityClass, PriorityGrant, Queue, Quota
from quotas.policy.ladder import default_ladder

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
    """One class of the demo's nodes. Links as the maker states them."""

    name: str
    title: str
    label_value: str
    memory_mib: int
    link: str
    rank: int


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
    Flavor("h100", "H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3", 81_559, "NVLink 900 GB/s", 10),
    Flavor("a100", "A100 SXM4 80GB", "NVIDIA-A100-SXM4-80GB", 81_920, "NVLink 600 GB/s", 20),
    Flavor("l40s", "L40S 48GB", "NVIDIA-L40S", 46_068, "PCIe 64 GB/s", 30),
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
def make_organisation() -> Organization:
    """Make what is missing of the demo's organization."""
    organization, _made = Organization.objects.get_or_create(slug="acme", defaults={"name": "Acme"})
    flavors = _make_flavors()
    teams = {slug: _make_team(organization, slug, name) for slug, name in TEAMS.items()}
    _make_people(teams)
    _make_queues(organization, teams, flavors)
    _make_ladder(teams)
    return organization


def _make_flavors() -> dict[str, ResourceFlavor]:
    rows = [asdict(flavor) for flavor in FLAVORS]
    return {row["name"]: ResourceFlavor.objects.get_or_create(name=row["name"], defaults=row)[0] for row in rows}


def _make_team(organization: Organization, slug: str, name: str) -> Team:
    defaults = {"organization": organization, "name": name, "namespace": f"team-{slug}"}
    return Team.objects.get_or_create(slug=slug, defaults=defaults)[0]


def _make_people(teams: dict[str, Team]) -> None:
    people = {}
    for login in LOGINS:
        defaults = {"email": f"{login.user}@acme.example", "is_superuser": login.user == "admin"}
        person, made = User.objects.get_or_create(username=login.user, defaults=defaults)
        if made:
            person.set_password(login.password)
            person.save(update_fields=["password"])
        people[login.user] = person
    for name, slug, role in MEMBERSHIPS:
        Membership.objects.get_or_create(user=people[name], team=teams[slug], defaults={"role": role})


def _make_queues(organization: Organization, teams: dict[str, Team], flavors: dict[str, ResourceFlavor]) -> None:
    root, _made = Cohort.objects.get_or_create(name="acme", defaults={"organization": organization})
    research, _made = Cohort.objects.get_or_create(
        name="research", defaults={"organization": organization, "parent": root}
    )
    for cohort in (root, research):
        for name, gpus in COHORT_QUOTA[cohort.name].items():
            Quota.objects.get_or_create(cohort=cohort, flavor=flavors[name], defaults={"nominal": gpus})
    for slug, team in teams.items():
        cohort = root if slug == "platform" else research
        queue, _made = Queue.objects.get_or_create(
            name=slug, defaults={"team": team, "cohort": cohort, "is_default": True}
        )
        for name, gpus in QUEUE_QUOTA[slug].items():
            Quota.objects.get_or_create(queue=queue, flavor=flavors[name], defaults={"nominal": gpus})


def _make_ladder(teams: dict[str, Team]) -> None:
    for rung in default_ladder():
        values = asdict(rung)
        PriorityClass.objects.get_or_create(name=values.pop("name"), defaults=values)
    for closed in PriorityClass.objects.filter(is_open=False):
        PriorityGrant.objects.get_or_create(priority_class=closed, team=teams["platform"])
