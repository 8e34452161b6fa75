"""Who may use which priority."""

import pytest

from portal.core.errors import DomainError
from quotas.models import PriorityClass, PriorityGrant
from quotas.policy.ladder import default_ladder
from quotas.selectors.priority import priorities_for, priority_for
from tests.quotas.conftest import World


@pytest.fixture
def ladder(world: World) -> None:
    PriorityClass.objects.bulk_create(
        PriorityClass(name=rung.name, value=rung.value, is_open=rung.is_open, is_default=rung.is_default)
        for rung in default_ladder()
    )


def test_the_ladder_runs_from_platform_critical_to_development() -> None:
    rungs = default_ladder()

    assert (rungs[0].name, rungs[0].value) == ("platform-critical", 1_000_000)
    assert (rungs[-1].name, rungs[-1].value) == ("development", 100)
    assert [rung.value for rung in rungs] == sorted({rung.value for rung in rungs}, reverse=True)
    assert sum(rung.is_default and rung.is_open for rung in rungs) == 1


@pytest.mark.usefixtures("ladder")
def test_a_team_may_use_the_open_classes_and_those_granted_to_it(world: World) -> None:
    assert [row.name for row in priorities_for(world.team)] == ["research", "standard", "development"]

    PriorityGrant.objects.create(priority_class=PriorityClass.objects.get(name="production"), team=world.team)

    assert "production" in {row.name for row in priorities_for(world.team)}
    assert priority_for(world.team, "production").value == 100_000


@pytest.mark.usefixtures("ladder")
def test_no_name_means_the_default(world: World) -> None:
    assert priority_for(world.team, None).name == "standard"
    assert priority_for(world.team, "").name == "standard"


@pytest.mark.usefixtures("ladder")
@pytest.mark.parametrize(
    ("name", "code"),
    [("production", "priority_not_allowed"), ("urgent", "unknown_priority"), ("ﬀ\x00", "unknown_priority")],
)
def test_a_refused_name_says_what_is_allowed(world: World, name: str, code: str) -> None:
    with pytest.raises(DomainError) as refusal:
        priority_for(world.team, name)

    assert (refusal.value.code, refusal.value.field) == (code, "priority")
    assert "research, standard, development" in str(refusal.value)


def test_without_a_ladder_the_answer_is_an_error_of_the_product(world: World) -> None:
    with pytest.raises(DomainError, match="no default priority"):
        priority_for(world.team, None)
