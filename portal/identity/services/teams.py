"""Organizations and teams, made by administrators of the platform."""

from django.db import transaction
from django.utils.translation import gettext as _

from portal.core import audit
from portal.core.audit import Actor, Target
from portal.core.errors import InvalidInputError
from portal.identity.models import Organization, Team
from portal.identity.services.rows import check

# A slug is a namespace on every cluster, where Kubernetes keeps some names for itself; "new" is a page of ours.
RESERVED_NAMES = ("default", "new")
RESERVED_PREFIX = "kube-"


@transaction.atomic
def create_organization(*, actor: Actor, name: str, slug: str) -> Organization:
    """Make a tenant. Raise InvalidInputError for a name or slug that is wrong or taken."""
    organization = Organization(name=name, slug=slug)
    check(organization)
    organization.save()
    target = Target(type="organization", id=str(organization.pk), label=name)
    audit.record(actor, "organization.created", target, after={"name": name, "slug": slug})
    return organization


@transaction.atomic
def create_team(*, actor: Actor, organization: Organization, name: str, slug: str) -> Team:
    """Make a team without members. Raise InvalidInputError for a name or slug that is wrong or taken."""
    if slug in RESERVED_NAMES or slug.startswith(RESERVED_PREFIX):
        text = _("This name is reserved: it becomes the team's namespace and its address.")
        raise InvalidInputError({"slug": [text]})
    team = Team(organization=organization, name=name, slug=slug, namespace=slug)
    check(team)
    team.save()
    after = {"name": name, "slug": slug, "organization": organization.slug}
    audit.record(actor, "team.created", team_target(team), after=after)
    return team


def team_target(team: Team) -> Target:
    """Return the team as the object of an act."""
    return Target(type="team", id=str(team.pk), label=team.slug, team_id=team.pk)
