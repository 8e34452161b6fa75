"""Edits of the quota tree: what is refused, what is written down, and who is told."""

import pytest
from django.test import TestCase

from portal.core.audit import Actor
from portal.core.errors import DomainError, InvalidInputError, StaleEditError
from portal.core.models import AuditEvent
from portal.identity.models import Organization
from quotas.models import Cohort, Queue, Quota
from quotas.policy.limits import MAX_DEPTH
from quotas.services import edits, tree
from quotas.services.tree import AboveParentError, set_quota
from quotas.services.usage import QuotaExceededError, reserve
from tests.factories import make_cohort, make_job, make_team, make_user
from tests.quotas.conftest import World, give, queue_beside
from tests.quotas.test_policy import REFUSED

ADMIN = Actor(name="admin", user_id=1)


def set_vision(world: World, nominal: object, *, version: int) -> tree.QuotaEdit:
    return set_quota(actor=ADMIN, owner=world.vision, flavor=world.h100, nominal=nominal, expected_version=version)


def last_event() -> AuditEvent:
    return AuditEvent.objects.latest("id")


# --- quota ---------------------------------------------------------------------------------------
def test_a_first_quota_is_written_audited_and_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(edits, "enqueue", lambda task: told.append(("enqueue", task)))
    monkeypatch.setattr(edits, "publish", lambda topic: told.append(("publish", topic)))

    edit = set_vision(world, 8, version=0)

    assert edit.quota is not None
    assert (edit.quota.nominal, edit.quota.version, edit.warnings) == (8, 1, ())
    assert told == [("enqueue", "jobs.tasks.run_cycle"), ("publish", "queues")]
    event = last_event()
    assert (event.action, event.actor, event.object_label, event.team_id) == (
        "quota.set",
        "admin",
        "vision",
        world.team.pk,
    )
    assert (event.before, event.after) == ({"h100": None}, {"h100": 8})


def test_an_edit_raises_the_version_and_keeps_before_and_after(world: World) -> None:
    give(world.vision, world.h100, 8)

    set_vision(world, "12", version=1)

    assert Quota.objects.values_list("nominal", "version").get() == (12, 2)
    assert (last_event().before, last_event().after) == ({"h100": 8}, {"h100": 12})


def test_children_above_their_parent_are_refused_with_both_numbers(world: World) -> None:
    give(world.research, world.h100, 10)
    give(queue_beside(world, "speech"), world.h100, 4)

    with pytest.raises(AboveParentError) as refusal:
        set_vision(world, 7, version=0)

    assert refusal.value.numbers == {"parent": "research", "flavor": "h100", "children": 11, "nominal": 10}
    assert refusal.value.field == "nominal"
    assert str(refusal.value) == "The children of research would hold 11 h100 GPUs, but research has 10."
    assert not Quota.objects.filter(queue=world.vision).exists()
    assert not AuditEvent.objects.exists()


def test_a_parent_cannot_sink_below_its_children(world: World) -> None:
    give(world.vision, world.h100, 8)
    give(world.research, world.h100, 10)

    with pytest.raises(AboveParentError) as refusal:
        set_quota(actor=ADMIN, owner=world.research, flavor=world.h100, nominal=7, expected_version=1)

    assert (refusal.value.numbers["children"], refusal.value.numbers["nominal"]) == (8, 7)


def test_taking_a_cap_away_hands_the_claims_to_the_next_parent(world: World) -> None:
    give(world.root, world.h100, 10)
    give(world.research, world.h100, 4)
    give(world.vision, world.h100, 4)
    other = make_cohort("other", parent=world.root)
    give(other, world.h100, 6)
    Quota.objects.filter(queue=world.vision).update(nominal=5)  # by hand, past the rules

    with pytest.raises(AboveParentError, match="children of acme would hold 11"):
        tree.remove_quota(actor=ADMIN, owner=world.research, flavor=world.h100, expected_version=1)


@pytest.mark.parametrize("text", REFUSED)
def test_a_refused_amount_changes_nothing(world: World, text: str) -> None:
    give(world.vision, world.h100, 8)

    with pytest.raises(InvalidInputError) as refusal:
        set_vision(world, text, version=1)

    assert refusal.value.problems == {"nominal": ["Write whole GPUs, from 0 to 1000000, in digits 0-9."]}
    assert Quota.objects.values_list("nominal", "version").get() == (8, 1)


def test_the_largest_amount_is_kept_exactly_and_admits(world: World) -> None:
    set_vision(world, 1_000_000, version=0)

    reserve(world.vision.pk, world.h100.pk, 1_000_000)
    with pytest.raises(QuotaExceededError):
        reserve(world.vision.pk, world.h100.pk, 1)


def test_a_stale_edit_shows_mine_and_the_stored_one(world: World) -> None:
    give(world.vision, world.h100, 8)
    set_vision(world, 12, version=1)

    with pytest.raises(StaleEditError) as refusal:
        set_vision(world, 4, version=1)

    numbers = refusal.value.numbers
    assert (numbers["mine"], numbers["mine_version"]) == (4, 1)
    assert (numbers["stored"], numbers["stored_version"]) == (12, 2)
    assert Quota.objects.get().nominal == 12


def test_an_edit_of_a_quota_that_was_taken_away_is_stale(world: World) -> None:
    with pytest.raises(StaleEditError) as refusal:
        set_vision(world, 4, version=3)

    assert (refusal.value.numbers["stored"], refusal.value.numbers["stored_version"]) == ("-", 0)


def test_a_quota_below_what_is_in_use_is_kept_with_a_warning_and_starts_nothing(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 6)

    edit = set_vision(world, 4, version=1)

    assert edit.warnings == ("vision holds 6 h100 GPUs, 2 above its 4: nothing new starts until they end.",)
    with pytest.raises(QuotaExceededError):
        reserve(world.vision.pk, world.h100.pk, 1)


def test_taking_a_queues_quota_away_leaves_it_none(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 6)

    edit = tree.remove_quota(actor=ADMIN, owner=world.vision, flavor=world.h100, expected_version=1)

    assert not Quota.objects.exists()
    assert "6 above its 0" in edit.warnings[0]
    assert last_event().action == "quota.removed"


# --- cohorts and queues --------------------------------------------------------------------------
def test_a_cohort_and_a_queue_are_added_below_a_parent(world: World) -> None:
    prod = tree.create_cohort(actor=ADMIN, organization=world.organization, name=" prod ", parent=world.root)
    queue = tree.create_queue(actor=ADMIN, team=world.team, cohort=prod, name="vision prod")

    assert (prod.name, prod.parent, queue.cohort) == ("prod", world.root, prod)
    assert not queue.is_default  # the team has one already
    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == [
        "cohort.created",
        "queue.created",
    ]


def test_the_first_queue_of_a_team_becomes_its_default(world: World) -> None:
    queue = tree.create_queue(actor=ADMIN, team=make_team("speech"), cohort=world.research, name="speech")

    assert queue.is_default


@pytest.mark.parametrize("name", ["", "  ", "-x", "a" * 61, "a\x00b", "a/b", "a\nb", "<b>"])
def test_a_bad_name_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        tree.create_cohort(actor=ADMIN, organization=world.organization, name=name)

    assert refusal.value.field == "name"


def test_a_name_is_given_once(world: World) -> None:
    with pytest.raises(InvalidInputError, match="taken"):
        tree.create_cohort(actor=ADMIN, organization=world.organization, name="research")
    with pytest.raises(InvalidInputError, match="taken"):
        tree.rename(actor=ADMIN, owner=world.research, name="acme", expected_version=1)


def test_nothing_hangs_below_a_cohort_of_another_organization(world: World) -> None:
    other = Organization.objects.create(name="Other", slug="other")

    with pytest.raises(InvalidInputError, match="another organization"):
        tree.create_cohort(actor=ADMIN, organization=other, name="x", parent=world.root)
    with pytest.raises(InvalidInputError, match="another organization"):
        tree.create_queue(actor=ADMIN, team=make_team("t", organization=other), cohort=world.root, name="x")


def test_the_tree_has_a_greatest_depth(world: World) -> None:
    deepest = world.research
    for n in range(MAX_DEPTH - 2):
        deepest = make_cohort(f"deep{n}", parent=deepest)

    with pytest.raises(InvalidInputError, match="at most 8 deep"):
        tree.create_cohort(actor=ADMIN, organization=world.organization, name="x", parent=deepest)


def test_a_rename_is_checked_against_the_version_that_was_seen(world: World) -> None:
    tree.rename(actor=ADMIN, owner=world.vision, name="sight", expected_version=1)

    with pytest.raises(StaleEditError) as refusal:
        tree.rename(actor=ADMIN, owner=world.vision, name="eyes", expected_version=1)

    assert (refusal.value.numbers["stored"], refusal.value.numbers["stored_name"]) == (2, "sight")
    assert Queue.objects.get(pk=world.vision.pk).name == "sight"


def test_a_queue_is_paused_and_resumed(world: World) -> None:
    tree.set_paused(actor=ADMIN, queue=world.vision, is_paused=True, expected_version=1)
    assert Queue.objects.get(pk=world.vision.pk).is_paused

    tree.set_paused(actor=ADMIN, queue=world.vision, is_paused=False, expected_version=2)
    assert not Queue.objects.get(pk=world.vision.pk).is_paused


def test_a_team_has_one_default_queue_and_it_goes_last(world: World) -> None:
    second = tree.create_queue(actor=ADMIN, team=world.team, cohort=world.research, name="second")
    with pytest.raises(DomainError, match="make another queue the default first"):
        tree.remove(actor=ADMIN, owner=world.vision, expected_version=1)

    tree.make_default(actor=ADMIN, queue=second, expected_version=1)
    tree.remove(actor=ADMIN, owner=world.vision, expected_version=1)

    assert list(Queue.objects.filter(team=world.team).values_list("name", "is_default")) == [("second", True)]


def test_what_is_in_use_is_not_removed(world: World) -> None:
    for owner in (world.root, world.research):
        with pytest.raises(DomainError, match="must be empty") as refusal:
            tree.remove(actor=ADMIN, owner=owner, expected_version=1)
        assert refusal.value.code == "in_use"
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 1)

    with pytest.raises(DomainError, match="still holds GPUs"):
        tree.remove(actor=ADMIN, owner=world.vision, expected_version=1)

    assert Cohort.objects.count() == 2


def test_a_queue_with_past_jobs_stays(world: World) -> None:
    make_job(world.team, make_user(), queue=world.vision)

    with pytest.raises(DomainError, match="no jobs"):
        tree.remove(actor=ADMIN, owner=world.vision, expected_version=1)

    assert Queue.objects.get(pk=world.vision.pk).version == 1  # nothing of the try was kept


def test_an_edit_costs_a_fixed_number_of_queries(world: World) -> None:
    set_vision(world, 1, version=0)
    for n in range(10):
        give(queue_beside(world, f"q{n}"), world.h100, 1)

    with TestCase().assertNumQueries(11):
        set_vision(world, 2, version=1)
