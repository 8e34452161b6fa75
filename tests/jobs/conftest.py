"""A team with GPUs to run on, and no broker: a hint has nobody to go to here."""

import pytest

from jobs.engine import cycle
from jobs.models import Attempt
from portal.core import enqueue
from portal.identity.models import Team
from tests.jobs.fleet import Fleet, make_fleet
from tests.jobs.scenes import Supply, make_supply


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue, "send_once", lambda _task: True)


@pytest.fixture
def supply(team: Team) -> Supply:
    return make_supply(team)


@pytest.fixture
def fleet() -> Fleet:
    return make_fleet()


@pytest.fixture
def attempt(fleet: Fleet) -> Attempt:
    fleet.job()
    cycle.run_once()
    return Attempt.objects.get()
