"""What people and the engine read of the supply."""

from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from clusters.models import Cluster, GpuSample, NodeAccelerator, ObservedPod, ResourceFlavor, TopologyLevel
from clusters.selectors.capacity import free_by_flavor, is_stale, stale_cluster_ids
from clusters.selectors.nodes import NodeDetail, node_detail, nodes_of
from clusters.selectors.observed import pods_of
from clusters.selectors.topology import CellState, Holder, cluster_map
from portal.core import clock
from tests.factories import make_cluster, make_flavor, make_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def flavor() -> ResourceFlavor:
    return make_flavor("h100")


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster("north")
    for depth, (name, key) in enumerate([("block", "t/block"), ("rack", "t/rack")]):
        TopologyLevel.objects.create(cluster=cluster, depth=depth, name=name, label_key=key)
    return cluster


def test_a_cluster_is_stale_when_silent_or_never_listed(cluster: Cluster) -> None:
    now = clock.now()
    silent = make_cluster(heard_at=now - timedelta(seconds=16))
    unlisted = make_cluster(synced_at=None)
    unheard = make_cluster(heard_at=None)

    assert stale_cluster_ids(now) == {silent.pk, unlisted.pk, unheard.pk}
    assert [is_stale(each, now) for each in (cluster, silent, unlisted, unheard)] == [False, True, True, True]


def test_free_gpus_are_those_that_can_be_had_now(cluster: Cluster, flavor: ResourceFlavor) -> None:
    make_node(cluster, flavor=flavor, name="open")
    make_node(cluster, flavor=flavor, is_cordoned=True)
    make_node(cluster, flavor=flavor, is_ready=False)
    make_node(cluster, flavor=flavor, gone_at=clock.now())
    make_node(make_cluster(heard_at=None), flavor=flavor)
    make_node(make_cluster(kubernetes_version="v1.29.9"), flavor=flavor)
    NodeAccelerator.objects.filter(node__name="open").update(allocatable=7, held=2, foreign=1)

    (row,) = free_by_flavor(clock.now())

    assert (row.nodes, row.capacity, row.allocatable) == (5, 40, 39)
    assert (row.usable, row.held, row.foreign, row.free) == (7, 2, 1, 4)
    assert free_by_flavor(clock.now(), clusters=[]) == []


def test_foreign_use_beyond_what_works_leaves_nothing_rather_than_less(
    cluster: Cluster, flavor: ResourceFlavor
) -> None:
    make_node(cluster, flavor=flavor)
    NodeAccelerator.objects.update(allocatable=1, foreign=1, held=1)
    make_node(cluster, flavor=flavor, gpus=2)

    assert free_by_flavor(clock.now())[0].free == 2


def test_the_map_shows_levels_nodes_and_every_gpu(cluster: Cluster, flavor: ResourceFlavor) -> None:
    first = make_node(cluster, flavor=flavor, name="a1", labels={"t/block": "b1", "t/rack": "r1"})
    make_node(cluster, flavor=flavor, name="a2", gpus=2, labels={"t/block": "b1", "t/rack": "r1"}, is_cordoned=True)
    make_node(cluster, flavor=flavor, name="b1", gpus=1, labels={"t/block": "b2", "t/rack": "r1"}, is_ready=False)
    make_node(cluster, flavor=flavor, name="x", gpus=1, labels={"t/rack": "r1"})
    NodeAccelerator.objects.filter(node=first).update(held=3, foreign=1, allocatable=7)

    root = cluster_map(cluster, {first.pk: [Holder("train-7", "/jobs/abc/", 2)]})

    assert [(block.name, [rack.name for rack in block.domains]) for block in root.domains] == [
        ("b1", ["r1"]),
        ("b2", ["r1"]),
        ("", ["r1"]),
    ]
    boxes = {box.name: [str(cell.state) for cell in box.cells] for box in root.all_nodes}
    assert boxes["a1"] == ["used"] * 3 + ["foreign"] + ["free"] * 3 + ["broken"]
    assert boxes["a2"] == ["cordoned"] * 2
    assert boxes["b1"] == ["not_ready"]
    assert [cell.label for cell in root.all_nodes[0].cells[:3]] == ["train-7", "train-7", ""]
    assert (root.gpus, root.free) == (12, 4)


def test_a_device_lost_while_in_use_still_shows_as_used(cluster: Cluster, flavor: ResourceFlavor) -> None:
    make_node(cluster, flavor=flavor)
    NodeAccelerator.objects.update(held=8, allocatable=7)

    states = [cell.state for cell in cluster_map(cluster).all_nodes[0].cells]

    assert states == [CellState.USED] * 8


def test_the_map_takes_the_same_queries_for_few_and_many_nodes(
    cluster: Cluster, flavor: ResourceFlavor, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(30):
        make_node(cluster, flavor=flavor, labels={"t/block": "b1", "t/rack": "r1"})

    with django_assert_num_queries(2):  # levels, nodes with their GPUs
        assert cluster_map(cluster).gpus == 240
    with django_assert_num_queries(2):
        assert sum(len(node.accelerators.all()) for node in nodes_of(cluster)) == 30


def detail(name: str) -> NodeDetail:
    found = node_detail("north", name, clock.now())
    assert found is not None
    return found


def test_the_checklist_of_a_node_says_what_is_missing(cluster: Cluster, flavor: ResourceFlavor) -> None:
    make_node(cluster, name="bare", labels={"t/rack": "r1"}, is_cordoned=True)

    checks = {check.code: check for check in detail("bare").checks}

    assert {code for code, check in checks.items() if check.is_met} == {
        *("cluster", "present", "ready", "whole_node", "trusted", "in_use")
    }
    assert checks["exporter"].is_met is None  # the cluster has no exporter to be heard
    assert checks["topology"].detail == "missing: block"


def test_a_whole_node_meets_its_whole_checklist(cluster: Cluster, flavor: ResourceFlavor) -> None:
    Cluster.objects.update(exporter_url="http://{address}:9400/metrics")
    labels = {"t/block": "b1", "t/rack": "r1", "nvidia.com/cuda.driver-version.full": "570.86.15"}
    node = make_node(cluster, flavor=flavor, name="whole", labels=labels)
    GpuSample.objects.create(at=clock.now(), cluster_id=cluster.pk, node_id=node.pk, gpu="GPU-1", index=0)

    found = detail("whole")

    assert [check.code for check in found.checks if not check.is_met] == []
    assert found.levels == [("block", "b1"), ("rack", "r1")]


def test_a_node_that_never_was_is_none() -> None:
    assert node_detail("north", "nobody", clock.now()) is None


def test_pods_of_an_attempt_come_by_rank(cluster: Cluster) -> None:
    for uid, rank, attempt in [("c", None, 1), ("b", 1, 1), ("a", 0, 1), ("z", 0, 2)]:
        ObservedPod.objects.create(
            cluster=cluster, uid=uid, name=uid, run="r", attempt=attempt, rank=rank, seen_at=clock.now()
        )

    assert [pod.uid for pod in pods_of("r", 1)] == ["a", "b", "c"]


def test_the_ninth_node_comes_before_the_tenth(cluster: Cluster) -> None:
    for name in ("n10", "n9", "n01", "n1", "9", "north"):
        make_node(cluster, name=name, labels={"t/block": "b1", "t/rack": "r1"})

    assert [box.name for box in cluster_map(cluster).all_nodes] == ["9", "n01", "n1", "n9", "n10", "north"]
