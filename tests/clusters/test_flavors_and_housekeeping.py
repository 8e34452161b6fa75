"""Flavors are data that administrators keep; old rows go by age."""

from datetime import timedelta

import pytest

from clusters.models import GpuSample, NodeEvent, ObservedPod, ResourceFlavor
from clusters.services.flavors import create_flavor, delete_flavor, update_flavor
from clusters.tasks import housekeeping
from portal.core import clock
from portal.core.audit import Actor
from portal.core.errors import DomainError, InvalidInputError
from portal.core.models import AuditEvent
from tests.factories import make_cluster, make_flavor, make_node

pytestmark = pytest.mark.django_db

ADMIN = Actor(name="root", user_id=1)
VALUES = {"name": "h100", "title": "H100", "label_value": "NVIDIA-H100-80GB-HBM3"}


def test_a_flavor_of_any_vendor_can_be_defined() -> None:
    flavor = create_flavor(
        actor=ADMIN,
        values={**VALUES, "resource_name": "amd.com/gpu", "label_key": "amd.com/gpu.product-name"},
    )

    assert flavor.resource_name == "amd.com/gpu"
    assert AuditEvent.objects.get().action == "flavor.created"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": ""}, "name"),
        ({"title": "x" * 81}, "title"),
        ({"resource_name": "a b"}, "resource_name"),
        ({"label_key": "/"}, "label_key"),
        ({"label_value": ""}, "label_value"),
        ({"label_value": "é"}, "label_value"),
        ({"memory_mib": -1}, "memory_mib"),
        ({"rank": "first"}, "rank"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_values_are_refused_by_field(values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        create_flavor(actor=ADMIN, values={**VALUES, **values})

    assert list(caught.value.problems) == [field]
    assert ResourceFlavor.objects.count() == 0


def test_the_log_of_a_change_holds_only_what_changed() -> None:
    flavor = create_flavor(actor=ADMIN, values=VALUES)

    update_flavor(actor=ADMIN, flavor=flavor, values={"title": "H100 80 GB"})

    event = AuditEvent.objects.latest("id")
    assert (event.before, event.after) == ({"title": "H100"}, {"title": "H100 80 GB"})


def test_a_flavor_that_a_node_has_cannot_be_deleted() -> None:
    flavor, unused = make_flavor(), make_flavor()
    make_node(make_cluster(), flavor=flavor)

    with pytest.raises(DomainError, match="in use by 1"):
        delete_flavor(actor=ADMIN, flavor=flavor)
    delete_flavor(actor=ADMIN, flavor=unused)

    assert ResourceFlavor.objects.get() == flavor


def test_old_rows_go_and_others_stay() -> None:
    now, node = clock.now(), make_node(make_cluster())
    for uid, gone_at in [("here", None), ("fresh", now), ("old", now - timedelta(days=2))]:
        ObservedPod.objects.create(
            cluster=node.cluster, uid=uid, name=uid, run="r", attempt=1, seen_at=now, gone_at=gone_at
        )
    for minutes in (1, 31):
        at = now - timedelta(minutes=minutes)
        GpuSample.objects.create(at=at, cluster_id=1, node_id=node.pk, gpu="g", index=0)
    NodeEvent.objects.create(node=node, at=now - timedelta(days=91), kind="ready")

    housekeeping()

    assert set(ObservedPod.objects.values_list("uid", flat=True)) == {"here", "fresh"}
    assert GpuSample.objects.count() == 1
    assert NodeEvent.objects.count() == 0
