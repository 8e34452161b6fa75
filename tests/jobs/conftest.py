"""A team with GPUs to run on."""

import pytest

from portal.identity.models import Team
from tests.jobs.scenes import Supply, make_supply


@pytest.fixture
def supply(team: Team) -> Supply:
    return make_supply(team)
