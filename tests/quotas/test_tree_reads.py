"""The tree as the engine and the pages read it."""

from django.test import TestCase

from portal.identity.models import Organization
from quotas.models import Cohort, QuotaUsage
from quotas.policy.document import cohort_id, queue_id
from quotas.selectors.tree import QuotaLeft, quota_left, quota_tree
from quotas.services.usage import reserve
from tests.factories import make_cohort, make_flavor
from tests.quotas.conftest import World, give, queue_beside


def test_parents_stand_before_their_children_with_their_depth(world: World) -> None:
    make_cohort("a-sibling", parent=world.root)

    nodes = quota_tree().nodes

    assert [(node.name, node.depth) for node in nodes] == [
        ("acme", 0),
        ("a-sibling", 1),
        ("research", 1),
        ("vision", 2),
    ]
    assert [node.is_queue for node in nodes] == [False, False, False, True]
    assert nodes[3].parent == cohort_id(world.research.pk)
    assert nodes[3].team_id == world.team.pk


def test_cells_hold_nominal_used_and_the_version_of_the_row(world: World) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 3)

    tree = quota_tree()

    vision, root = (queue_id(world.vision.pk), world.h100.pk), (cohort_id(world.root.pk), world.h100.pk)
    assert tree.nominal == {vision: 8}
    assert tree.versions == {vision: 1}
    assert (tree.used[vision], tree.used[root]) == (3, 3)


def test_the_tree_of_one_organization_shows_nothing_of_another(world: World) -> None:
    other = Organization.objects.create(name="Other", slug="other")
    foreign = Cohort.objects.create(organization=other, name="foreign")
    give(foreign, world.h100, 99)

    tree = quota_tree(world.organization.pk)

    assert "foreign" not in {node.name for node in tree.nodes}
    assert tree.nominal == {}
    assert len(quota_tree().nodes) == 4


def test_a_tree_of_any_size_costs_two_queries(world: World) -> None:
    for n in range(20):
        give(queue_beside(world, f"q{n}"), world.h100, n)

    with TestCase().assertNumQueries(2):
        tree = quota_tree()

    assert len(tree.nodes) == 23


def test_what_is_left_is_the_least_room_on_the_path(world: World) -> None:
    give(world.vision, world.h100, 8)
    give(world.root, world.h100, 10)
    give(world.vision, a100 := make_flavor("a100"), 4)
    QuotaUsage.objects.create(cohort=world.root, flavor=world.h100, used=7)
    QuotaUsage.objects.create(queue=world.vision, flavor=world.h100, used=2)
    QuotaUsage.objects.create(queue=world.vision, flavor=a100, used=6)  # an administrator lowered it meanwhile

    left = quota_left(world.team)

    assert left == (
        QuotaLeft("vision", world.h100.pk, nominal=8, used=2, left=3),
        QuotaLeft("vision", a100.pk, nominal=4, used=6, left=0),
    )
