"""Edits at once: each right on its own, together wrong."""

from contextlib import nullcontext
from functools import partial

import pytest

from portal.core.audit import Actor
from portal.core.errors import StaleEditError
from quotas.models import Quota
from quotas.services import tree
from quotas.services.tree import AboveParentError, set_quota
from tests.quotas.conftest import World, give, queue_beside
from tests.quotas.test_usage_races import run_at_once

ADMIN = Actor(name="admin", user_id=1)
EDITORS = 8


def eight_children_want_three_of_ten(world: World) -> list[BaseException | None]:
    give(world.research, world.h100, 10)
    queues = [queue_beside(world, f"q{n}") for n in range(EDITORS)]
    edit = partial(set_quota, actor=ADMIN, flavor=world.h100, nominal=3, expected_version=0)
    return run_at_once([partial(edit, owner=queue) for queue in queues])


def children_total() -> int:
    return sum(Quota.objects.filter(queue__isnull=False).values_list("nominal", flat=True))


def test_edits_of_several_children_at_once_never_break_the_parent(committed_world: World) -> None:
    raised = eight_children_want_three_of_ten(committed_world)

    assert [e for e in raised if e and not isinstance(e, AboveParentError)] == []
    assert children_total() == 9
    assert sum(error is None for error in raised) == 3
    assert sum(isinstance(error, AboveParentError) for error in raised) == EDITORS - 3


def test_without_the_lock_the_same_edits_break_the_parent(
    committed_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "one_at_a_time", nullcontext)

    eight_children_want_three_of_ten(committed_world)

    assert children_total() > 10


def test_of_eight_edits_of_one_quota_at_once_one_wins_and_the_others_are_stale(committed_world: World) -> None:
    world = committed_world
    give(world.vision, world.h100, 1)
    edit = partial(set_quota, actor=ADMIN, owner=world.vision, flavor=world.h100, expected_version=1)

    raised = run_at_once([partial(edit, nominal=n + 10) for n in range(EDITORS)])

    assert sum(error is None for error in raised) == 1
    assert sum(isinstance(error, StaleEditError) for error in raised) == EDITORS - 1
    assert Quota.objects.get().version == 2
