"""Counters against what is really held."""

from portal.core.audit import SYSTEM
from portal.core.models import AuditEvent
from quotas.drift import recompute_usage, repair
from quotas.models import QuotaUsage
from quotas.services.usage import reserve
from tests.quotas.conftest import World, give, queue_beside


def held_by_two(world: World) -> dict[tuple[int, int], int]:
    speech = queue_beside(world, "speech")
    for queue, gpus in ((world.vision, 5), (speech, 3)):
        give(queue, world.h100, 8)
        reserve(queue.pk, world.h100.pk, gpus)
    return {(world.vision.pk, world.h100.pk): 5, (speech.pk, world.h100.pk): 3}


def test_counters_that_agree_show_no_drift(world: World) -> None:
    assert recompute_usage(held_by_two(world)) == ()


def test_a_drift_put_in_by_hand_is_named_with_both_numbers(world: World) -> None:
    held = held_by_two(world)
    QuotaUsage.objects.filter(queue=world.vision).update(used=7)

    (drift,) = recompute_usage(held)

    assert (drift.node.name, drift.flavor_id, drift.counted, drift.held) == ("vision", world.h100.pk, 7, 5)


def test_a_missed_release_shows_on_the_whole_path(world: World) -> None:
    held = held_by_two(world)
    del held[world.vision.pk, world.h100.pk]

    drifts = recompute_usage(held)

    assert [(drift.node.name, drift.counted, drift.held) for drift in drifts] == [
        ("acme", 8, 3),
        ("research", 8, 3),
        ("vision", 5, 0),
    ]


def test_repair_puts_every_counter_right_and_says_so(world: World) -> None:
    held = held_by_two(world)
    QuotaUsage.objects.filter(queue=world.vision).update(used=7)
    QuotaUsage.objects.filter(cohort=world.root).delete()

    repaired = repair(actor=SYSTEM, read_held=lambda: held)

    assert [drift.node.name for drift in repaired] == ["acme", "vision"]
    assert recompute_usage(held) == ()
    events = AuditEvent.objects.filter(action="usage.repaired").order_by("id")
    assert [(event.object_label, event.before["used"], event.after["used"]) for event in events] == [
        ("acme", 0, 8),
        ("vision", 7, 5),
    ]


def test_repair_without_drift_writes_nothing(world: World) -> None:
    held = held_by_two(world)

    assert repair(actor=SYSTEM, read_held=lambda: held) == ()
    assert not AuditEvent.objects.exists()
