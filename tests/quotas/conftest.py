"""A small tree: the organization's root cohort, a cohort below it, and in it the queue of one team."""

from dataclasses import dataclass

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from clusters.models import ResourceFlavor
from portal.identity.models import Organization, Team
from quotas.models import Cohort, Queue, Quota


@dataclass(frozen=True)
class World:
    """The rows of the small tree; `h100` is the flavor in which quota is given."""

    organization: Organization
    team: Team
    h100: ResourceFlavor
    root: Cohort
    research: Cohort
    vision: Queue


def make_flavor(name: str) -> ResourceFlavor:
    return ResourceFlavor.objects.create(name=name, title=name.upper(), label_value=name)


def make_team(organization: Organization, slug: str) -> Team:
    return Team.objects.create(organization=organization, name=slug, slug=slug, namespace=f"team-{slug}")


def make_world() -> World:
    organization = Organization.objects.create(name="Acme", slug="acme")
    team = make_team(organization, "vision")
    root = Cohort.objects.create(organization=organization, name="acme")
    research = Cohort.objects.create(organization=organization, name="research", parent=root)
    vision = Queue.objects.create(name="vision", team=team, cohort=research, is_default=True)
    return World(organization, team, make_flavor("h100"), root, research, vision)


def give(owner: Cohort | Queue, flavor: ResourceFlavor, nominal: int) -> Quota:
    """Write a quota row straight into the database, without the rules of the services."""
    if isinstance(owner, Queue):
        return Quota.objects.create(queue=owner, flavor=flavor, nominal=nominal)
    return Quota.objects.create(cohort=owner, flavor=flavor, nominal=nominal)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    # The token package makes its own table although ours replaces it. Nothing uses it, and its foreign key to
    # users stops the TRUNCATE that ends a test with committed rows.
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS knox_authtoken")


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.fixture
def committed_world(transactional_db: None) -> World:
    """The same, visible to other connections."""
    return make_world()
