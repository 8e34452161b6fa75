"""Rows follow what the streams bring, by uid, in one transaction for each batch."""

from typing import Any

import msgspec
import pytest
from django.db import OperationalError

from clusters.models import (
    Cluster,
    Node,
    NodeAccelerator,
    NodeEvent,
    ObservedObject,
    ObservedPod,
    PersistentClaim,
    ResourceFlavor,
)
from clusters.watch import mirror as mirror_module
from clusters.watch.inbox import Batch
from clusters.watch.inventory import Catalogue, FlavorSelector
from clusters.watch.mirror import Mirror, reader_for
from clusters.watch.reading import FORMS, Reader, Reading
from tests.clusters.documents import DOMAIN, PRODUCT, Json, claim, job, node, pod, warning

pytestmark = pytest.mark.django_db


@pytest.fixture
def flavor() -> ResourceFlavor:
    return ResourceFlavor.objects.create(name="h100", title="H100", label_value=PRODUCT)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="north", server="http://127.0.0.1:1")


@pytest.fixture
def catalogue(flavor: ResourceFlavor) -> Catalogue:
    return written_catalogue()


def written_catalogue() -> Catalogue:
    rows = ResourceFlavor.objects.all()
    selectors = (FlavorSelector(row.pk, row.name, row.label_key, row.label_value, row.resource_name) for row in rows)
    return Catalogue(tuple(selectors), ("topology/rack",))


@pytest.fixture
def mirror(cluster: Cluster, catalogue: Catalogue) -> Mirror:
    return fresh(cluster, catalogue)


def fresh(cluster: Cluster, catalogue: Catalogue) -> Mirror:
    mirror = Mirror(cluster, catalogue)
    mirror.load()
    return mirror


def reading(reader: Reader, kind: str, body: Json) -> Reading:
    return reader.read(kind, FORMS[kind].object(msgspec.json.encode(body)))


def lists(**items: list[Json]) -> Batch:
    """A batch of complete lists; the essential kinds that are not named are empty."""
    batch, reader = Batch(), reader_for(written_catalogue())
    for kind in {"nodes", "pods", "jobs", "deployments", *items}:
        batch.add_list(kind, [reading(reader, kind, body) for body in items.get(kind, [])])
    return batch


def event(kind: str, verb: str, body: Json) -> Batch:
    batch = Batch()
    batch.add_event(kind, verb, reading(reader_for(written_catalogue()), kind, body))
    return batch


def timeline() -> list[str]:
    return list(NodeEvent.objects.order_by("id").values_list("kind", flat=True))


def test_the_first_lists_become_rows_and_hints(mirror: Mirror, cluster: Cluster) -> None:
    hints = mirror.apply(
        lists(
            nodes=[node("n1"), node("n2", labels={"nvidia.com/gpu.product": "Tesla-T4"})],
            pods=[pod("m-0", run="r1", gpus=8, node="n1"), pod("other", gpus=3, node="n1", phase="Running")],
            jobs=[job("m", status={"active": 1})],
            persistentvolumeclaims=[claim("data")],
        )
    )

    offered = NodeAccelerator.objects.get()
    assert (offered.node.name, offered.capacity, offered.allocatable, offered.foreign) == ("n1", 8, 8, 3)
    assert Node.objects.get(name="n1").foreign_pods == 1
    assert [(each.name, each.gpus) for each in ObservedPod.objects.all()] == [("m-0", 8)]
    assert ObservedObject.objects.get().status == {"active": 1}
    assert PersistentClaim.objects.get().access_modes == ["ReadWriteMany"]
    assert timeline() == ["registered", "registered"]
    assert hints == {"jobs.tasks.reconcile", "jobs.tasks.run_cycle"}
    cluster.refresh_from_db()
    assert cluster.synced_at is not None


def test_the_same_list_again_writes_nothing_and_hints_nobody(
    mirror: Mirror, cluster: Cluster, catalogue: Catalogue
) -> None:
    batch = lists(nodes=[node("n1")], pods=[pod("m-0", run="r1"), pod("other", node="n1", gpus=2)], jobs=[job("m")])
    mirror.apply(batch)
    seen = ObservedPod.objects.get().seen_at

    assert mirror.apply(batch) == frozenset()
    assert fresh(cluster, catalogue).apply(batch) == frozenset()

    assert ObservedPod.objects.get().seen_at == seen
    assert timeline() == ["registered"]


def test_a_row_that_a_complete_list_lacks_is_gone(mirror: Mirror) -> None:
    mirror.apply(lists(nodes=[node("n1"), node("n2")], pods=[pod("a", run="r"), pod("b", run="r")], jobs=[job("m")]))

    mirror.apply(lists(nodes=[node("n2")], pods=[pod("b", run="r")]))

    assert list(Node.objects.filter(gone_at=None).values_list("name", flat=True)) == ["n2"]
    assert list(ObservedPod.objects.filter(gone_at=None).values_list("name", flat=True)) == ["b"]
    assert ObservedObject.objects.get().gone_at is not None
    assert timeline()[-1] == "gone"


def test_a_watcher_that_starts_anew_finds_what_went_while_it_was_away(
    mirror: Mirror, cluster: Cluster, catalogue: Catalogue
) -> None:
    mirror.apply(lists(nodes=[node("n1"), node("n2")], pods=[pod("a", run="r")], jobs=[job("m")]))

    fresh(cluster, catalogue).apply(lists(nodes=[node("n1", cordoned=True)]))

    assert ObservedPod.objects.get().gone_at is not None
    assert ObservedObject.objects.get().gone_at is not None
    assert set(timeline()[2:]) == {"gone", "cordoned"}


def test_a_replayed_old_deletion_does_not_end_a_new_pod_of_the_same_name(mirror: Mirror) -> None:
    old, new = pod("train-0", run="r", uid="old", version=5), pod("train-0", run="r", uid="new", version=9)
    mirror.apply(lists(pods=[old]))
    mirror.apply(lists(pods=[new]))

    mirror.apply(event("pods", "DELETED", old))

    assert ObservedPod.objects.get(uid="new").gone_at is None
    assert ObservedPod.objects.get(uid="old").gone_at is not None


def test_an_older_version_of_a_pod_changes_nothing(mirror: Mirror) -> None:
    mirror.apply(lists(pods=[pod("a", run="r", version=10, phase="Failed")]))

    mirror.apply(event("pods", "MODIFIED", pod("a", run="r", version=9, phase="Running")))

    assert ObservedPod.objects.get().phase == "Failed"


def test_a_deleted_pod_keeps_its_last_state(mirror: Mirror) -> None:
    mirror.apply(lists(pods=[pod("a", run="r", node="n1", phase="Running")]))

    mirror.apply(event("pods", "DELETED", pod("a", run="r", node="n1", version=2, phase="Failed")))

    row = ObservedPod.objects.get()
    assert row.phase == "Failed"
    assert row.gone_at is not None


def test_pods_of_another_installation_are_foreign(mirror: Mirror) -> None:
    theirs = pod("x", run="r", installation="elsewhere", node="n1", gpus=4, phase="Running")

    mirror.apply(lists(nodes=[node("n1")], pods=[theirs]))

    assert ObservedPod.objects.count() == 0
    assert NodeAccelerator.objects.get().foreign == 4


def test_foreign_usage_falls_when_the_pod_ends_and_hints_a_cycle(mirror: Mirror) -> None:
    mirror.apply(lists(nodes=[node("n1")], pods=[pod("x", node="n1", gpus=4, phase="Running")]))

    hints = mirror.apply(event("pods", "MODIFIED", pod("x", node="n1", gpus=4, phase="Succeeded", version=2)))

    assert NodeAccelerator.objects.get().foreign == 0
    assert hints == {"jobs.tasks.run_cycle"}


def test_what_others_floors_hold_on_a_node_is_never_written(mirror: Mirror) -> None:
    mirror.apply(lists(nodes=[node("n1")]))
    NodeAccelerator.objects.update(held=5)

    mirror.apply(event("nodes", "MODIFIED", node("n1", gpus=7, version=2)))
    mirror.apply(event("nodes", "MODIFIED", node("n1", labels={"nvidia.com/gpu.product": None}, version=3)))

    row = NodeAccelerator.objects.get()
    assert (row.capacity, row.allocatable, row.held) == (0, 0, 5)
    assert timeline() == ["registered", "device_lost", "device_lost"]


def test_a_node_made_anew_under_its_name_keeps_its_row_and_has_a_new_uid(mirror: Mirror) -> None:
    mirror.apply(lists(nodes=[node("n1", uid="a")]))
    mirror.apply(event("nodes", "DELETED", node("n1", uid="a")))
    mirror.apply(event("nodes", "ADDED", node("n1", uid="b", version=7)))
    mirror.apply(event("nodes", "DELETED", node("n1", uid="a")))

    row = Node.objects.get()
    assert (row.uid, row.gone_at) == ("b", None)
    assert timeline() == ["registered", "gone", "returned"]


def test_both_lives_of_a_node_within_one_batch_end_in_the_second(mirror: Mirror) -> None:
    mirror.apply(lists(nodes=[node("n1", uid="a")]))
    batch = event("nodes", "DELETED", node("n1", uid="a"))
    batch.add_newer(event("nodes", "ADDED", node("n1", uid="b", version=7)))

    mirror.apply(batch)

    assert Node.objects.get().uid == "b"
    assert Node.objects.get().gone_at is None


def test_a_warning_reaches_its_job_whether_it_comes_before_or_after_it(mirror: Mirror) -> None:
    text = "pods is forbidden: exceeded quota"
    mirror.apply(lists(jobs=[job("a")]))
    mirror.apply(event("events", "ADDED", warning("uid-a", "FailedCreate", text)))
    mirror.apply(event("events", "ADDED", warning("uid-b", "FailedCreate", text, name="e2")))
    mirror.apply(event("jobs", "ADDED", job("b")))

    assert set(ObservedObject.objects.values_list("warning", flat=True)) == {text}


def test_a_warning_explains_a_pod_that_is_silent_and_stays_over_its_changes(mirror: Mirror) -> None:
    silent: dict[str, Any] = {"run": "r", "node": "n1"}
    mirror.apply(lists(pods=[pod("a", **silent)]))
    mirror.apply(event("events", "ADDED", warning("uid-a", "FailedScheduling", "0/1 nodes")))
    assert ObservedPod.objects.get().reason == ""  # it has a node by now

    mirror.apply(event("events", "ADDED", warning("uid-a", "FailedMount", "claim data not found")))
    assert ObservedPod.objects.get().message == "claim data not found"
    mirror.apply(event("pods", "MODIFIED", pod("a", version=2, **silent)))
    assert ObservedPod.objects.get().reason == "FailedMount"
    mirror.apply(event("pods", "MODIFIED", pod("a", version=3, phase="Running", **silent)))
    assert ObservedPod.objects.get().reason == ""


def test_claims_come_and_go(mirror: Mirror) -> None:
    mirror.apply(lists(persistentvolumeclaims=[claim("a"), claim("b")]))
    mirror.apply(event("persistentvolumeclaims", "DELETED", claim("a")))
    mirror.apply(event("persistentvolumeclaims", "DELETED", claim("b", uid="an-older-one")))

    assert list(PersistentClaim.objects.values_list("name", flat=True)) == ["b"]


def test_a_batch_that_failed_half_way_is_applied_whole_by_the_next_try(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OperationalError("the server closed the connection unexpectedly")

    batch = lists(nodes=[node("n1")], pods=[pod("m", run="r"), pod("x", node="n1", gpus=2)], jobs=[job("m")])
    with monkeypatch.context() as patched:
        patched.setattr(mirror_module, "publish", fail)
        with pytest.raises(OperationalError):
            mirror.apply(batch)
    assert Node.objects.count() == 0

    mirror.load()
    mirror.apply(batch)

    assert NodeAccelerator.objects.get().foreign == 2
    assert ObservedPod.objects.count() == 1


def test_labels_follow_the_domain_of_the_installation() -> None:
    assert mirror_module.sources()[2].labels == f"{DOMAIN}/installation=default"


def test_a_storm_of_warnings_is_no_error_and_the_newest_are_kept(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_module, "_MAX_WARNINGS", 2)
    pods = [pod(f"m-{number}", run="r1") for number in range(3)]
    storm = [warning(f"uid-m-{number}", "FailedScheduling", f"no room {number}") for number in range(3)]
    mirror.apply(lists(pods=pods, events=storm))

    assert ObservedPod.objects.exclude(message="").count() == 2
