"""Edits of the ladder."""

import pytest

from portal.core.audit import Actor
from portal.core.errors import DomainError, InvalidInputError, StaleEditError
from portal.core.models import AuditEvent
from quotas.models import PriorityClass
from quotas.selectors.priority import ladder, priorities_for
from quotas.services.priority import (
    PriorityValues,
    create_priority,
    delete_priority,
    edit_priority,
    install_ladder,
    set_grants,
)
from tests.factories import make_job, make_user
from tests.quotas.conftest import World

ADMIN = Actor(name="admin", user_id=1)


@pytest.fixture
def rungs(world: World) -> dict[str, PriorityClass]:
    install_ladder(actor=ADMIN)
    return {rung.name: rung for rung in ladder()}


def test_the_ladder_is_installed_once_and_keeps_what_was_changed(rungs: dict[str, PriorityClass]) -> None:
    values = PriorityValues("research", 20_000, is_open=False)
    edit_priority(actor=ADMIN, rung=rungs["research"], values=values, expected_version=1)

    install_ladder(actor=ADMIN)

    assert PriorityClass.objects.count() == 6
    assert PriorityClass.objects.get(name="research").value == 20_000


def test_a_class_is_added_with_an_audit_record(world: World) -> None:
    create_priority(actor=ADMIN, values=PriorityValues("nightly", 50, "Runs at night", is_open=True))

    event = AuditEvent.objects.latest("id")
    assert (event.action, event.after["value"]) == ("priority.created", 50)
    assert [rung.name for rung in priorities_for(world.team)] == ["nightly"]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        (PriorityValues("system-node-critical", 5), "name", "reserved by Kubernetes"),
        (PriorityValues("system-", 5), "name", "reserved by Kubernetes"),
        (PriorityValues("", 5), "name", "lower-case"),
        (PriorityValues("Urgent", 5), "name", "lower-case"),
        (PriorityValues("ürgent", 5), "name", "lower-case"),
        (PriorityValues("a" * 61, 5), "name", "lower-case"),
        (PriorityValues("a\x00", 5), "name", "lower-case"),
        (PriorityValues("production", 5), "name", "taken"),
        (PriorityValues("urgent", 1_000_000_001), "value", "1000000000"),
        (PriorityValues("urgent", -1_000_000_001), "value", "1000000000"),
        (PriorityValues("urgent", 10**30), "value", "1000000000"),
        (PriorityValues("urgent", 100_000), "value", "Another class"),
        (PriorityValues("urgent", 5, "x" * 201), "description", "200"),
        (PriorityValues("urgent", 5, "\x00"), "description", "200"),
    ],
)
@pytest.mark.usefixtures("rungs")
def test_a_bad_class_is_refused_with_its_field(values: PriorityValues, field: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        create_priority(actor=ADMIN, values=values)

    assert list(refusal.value.problems) == [field]
    assert words in str(refusal.value)
    assert PriorityClass.objects.count() == 6


def test_the_greatest_value_is_allowed(world: World) -> None:
    assert create_priority(actor=ADMIN, values=PriorityValues("top", 1_000_000_000)).value == 1_000_000_000


def test_another_default_takes_the_place_of_the_old_one(rungs: dict[str, PriorityClass]) -> None:
    values = PriorityValues("research", 10_000, is_open=True, is_default=True)

    edit_priority(actor=ADMIN, rung=rungs["research"], values=values, expected_version=1)

    assert list(PriorityClass.objects.filter(is_default=True).values_list("name", flat=True)) == ["research"]


def test_the_default_is_replaced_but_never_dropped(rungs: dict[str, PriorityClass]) -> None:
    standard = rungs["standard"]
    with pytest.raises(InvalidInputError, match="another class the default"):
        edit_priority(actor=ADMIN, rung=standard, values=PriorityValues("standard", 1_000), expected_version=1)
    with pytest.raises(DomainError, match="is the default"):
        delete_priority(actor=ADMIN, rung=standard, expected_version=1)


def test_a_stale_edit_shows_the_stored_value(rungs: dict[str, PriorityClass]) -> None:
    rung = rungs["development"]
    edit_priority(actor=ADMIN, rung=rung, values=PriorityValues("development", 200, is_open=True), expected_version=1)

    with pytest.raises(StaleEditError) as refusal:
        edit_priority(actor=ADMIN, rung=rung, values=PriorityValues("development", 300), expected_version=1)

    assert (refusal.value.numbers["mine"], refusal.value.numbers["stored"]) == (1, 2)
    assert refusal.value.numbers["stored_value"] == "200"


def test_a_class_that_jobs_name_is_not_deleted(world: World, rungs: dict[str, PriorityClass]) -> None:
    make_job(world.team, make_user(), queue=world.vision, priority_class=rungs["development"])

    with pytest.raises(DomainError) as refusal:
        delete_priority(actor=ADMIN, rung=rungs["development"], expected_version=1)
    delete_priority(actor=ADMIN, rung=rungs["production-batch"], expected_version=1)

    assert refusal.value.code == "in_use"
    assert set(rungs) - set(PriorityClass.objects.values_list("name", flat=True)) == {"production-batch"}


def test_grants_open_a_class_to_some_teams(world: World, rungs: dict[str, PriorityClass]) -> None:
    set_grants(actor=ADMIN, rung=rungs["production"], teams=[world.team], expected_version=1)
    assert "production" in {rung.name for rung in priorities_for(world.team)}

    set_grants(actor=ADMIN, rung=rungs["production"], teams=[], expected_version=2)
    assert "production" not in {rung.name for rung in priorities_for(world.team)}
    assert AuditEvent.objects.latest("id").before == {"teams": ["vision"]}
