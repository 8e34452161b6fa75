"""A small tree: the organization's root cohort, a cohort below it, and in it the queue of one team."""

from dataclasses import dataclass

import pytest

from clusters.models import ResourceFlavor
from portal.identity.models import Organization, Team
from quotas.models import Cohort, Queue, Quota
from tests.factories import make_cohort, make_flavor, make_queue, make_team


@dataclass(frozen=True)
class World:
    """The rows of the small tree; `h100` is the flavor in which quota is given."""

    organization: Organization
    team: Team
    h100: ResourceFlavor
    root: Cohort
    research: Cohort
    vision: Queue


def make_world() -> World:
    team = make_team("vision")
    root = make_cohort("acme")
    research = make_cohort("research", parent=root)
    vision = make_queue(team, cohort=research, name="vision")
    return World(team.organization, team, make_flavor("h100"), root, research, vision)


def queue_beside(world: World, name: str) -> Queue:
    """Add a queue of another team of the same organization to the research cohort."""
    return make_queue(make_team(name), cohort=world.research, name=name)


def give(owner: Cohort | Queue, flavor: ResourceFlavor, nominal: int) -> Quota:
    """Write a quota row straight into the database, without the rules of the services."""
    if isinstance(owner, Queue):
        return Quota.objects.create(queue=owner, flavor=flavor, nominal=nominal)
    return Quota.objects.create(cohort=owner, flavor=flavor, nominal=nominal)


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.fixture
def committed_world(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same, visible to other connections. Hints stay unsent: the broker's schema is not in the test database."""
    monkeypatch.setattr("portal.core.enqueue.send_once", lambda _task: False)
    return make_world()
