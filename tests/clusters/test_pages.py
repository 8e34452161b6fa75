"""The list of clusters and the map of one, as people see them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings
from pytest_django.asserts import assertContains, assertNotContains

from clusters.models import Cluster, GpuSample, Node, NodeAccelerator, ResourceFlavor, TopologyLevel
from jobs.models import Allocation, Attempt, Job
from portal.core import clock
from portal.identity.models import Team, User
from tests.factories import make_cluster, make_flavor, make_job, make_node, make_team, make_user

pytestmark = pytest.mark.django_db
Browser = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _patience(settings: Settings) -> None:
    # A slow machine makes nothing stale.
    settings.MUSTER_STALE_AFTER_S = settings.MUSTER_SCRAPE_S = 120.0


@pytest.fixture
def h100() -> ResourceFlavor:
    return make_flavor("h100")


@pytest.fixture
def north() -> Cluster:
    cluster = make_cluster("north", kubernetes_version="v1.36.3")
    for depth, (name, key) in enumerate([("block", "t/block"), ("rack", "t/rack")]):
        TopologyLevel.objects.create(cluster=cluster, depth=depth, name=name, label_key=key)
    return cluster


def rack(cluster: Cluster, flavor: ResourceFlavor, name: str, nodes: int = 1, **fields: Any) -> list[Node]:
    labels = {"t/block": "b1", "t/rack": name}
    return [
        make_node(cluster, flavor=flavor, name=f"{name}-n{number}", labels=labels, **fields)
        for number in range(1, nodes + 1)
    ]


def hold(job: Job, node: Node, *, gpus: int = 8, utils: tuple[float, ...] = ()) -> None:
    """Let a running job hold GPUs of a node; `utils` is what each of them measures now."""
    now = clock.now()
    attempt, _made = Attempt.objects.get_or_create(
        job=job,
        number=1,
        defaults={"cluster": node.cluster, "workers": 1, "step": "running", "step_at": now, "due_at": now},
    )
    accelerator = node.accelerators.get()
    Allocation.objects.create(
        attempt=attempt,
        rank=attempt.allocations.count(),
        node=node,
        node_uid=node.uid,
        flavor=accelerator.flavor,
        queue_id=job.queue_id,
        gpus=gpus,
        cpu_milli=16_000,
        memory_mib=65_536,
        made_at=now,
    )
    accelerator.held += gpus
    accelerator.save()
    for index, util in enumerate(utils):
        GpuSample.objects.create(
            at=now, cluster_id=node.cluster_id, node_id=node.pk, gpu=f"GPU-{node.pk}-{index}", index=index,
            run=job.uid, rank=0, utilisation=util,
        )  # fmt: skip


def test_the_list_says_what_each_cluster_has(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor
) -> None:
    rack(north, h100, "r1", 2)
    make_node(north, flavor=h100, name="down", is_ready=False)
    NodeAccelerator.objects.filter(node__name="r1-n1").update(held=3)

    page = browser_of(bob).get("/clusters/")

    assertContains(page, "Healthy")
    assertContains(page, "simulated")
    assertContains(page, "v1.36.3")
    assertContains(page, "2 of 3")
    assertContains(page, "<bdi><strong>13</strong> / 16 / 24</bdi>", html=True)


def test_a_cluster_with_fake_nodes_says_what_of_it_is_real(browser_of: Browser, bob: User, north: Cluster) -> None:
    Cluster.objects.update(has_fake_nodes=True)

    assertContains(browser_of(bob).get("/clusters/"), "real API, fake nodes")
    page = browser_of(bob).get("/clusters/north/")
    assertContains(page, "real API, fake nodes")
    assertContains(page, "pods run no program, write no logs and use no GPU")


def test_a_stale_cluster_says_since_when_and_never_what_is_free(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor
) -> None:
    rack(north, h100, "r1")
    Cluster.objects.update(heard_at=clock.now() - timedelta(minutes=10, seconds=5), last_error="connection refused")

    for address in ("/clusters/", "/clusters/north/", "/fleet/"):
        page = browser_of(bob).get(address)
        assertContains(page, "no word from north for")
        assertContains(page, "10 m")
        assertNotContains(page, 'm-gpu-free"></i><i')
    assertContains(browser_of(bob).get("/clusters/"), "connection refused")
    assertContains(browser_of(bob).get("/clusters/north/"), "8 GPUs: 8 no data")


def test_only_administrators_are_offered_to_register(
    browser_of: Browser, bob: User, admin: User, north: Cluster
) -> None:
    for address in ("/clusters/", "/clusters/north/"):
        assertNotContains(browser_of(bob).get(address), "/console/clusters/")
        assertContains(browser_of(admin).get(address), "/console/clusters/")


def test_supply_is_open_to_a_person_without_a_team(browser_of: Browser, north: Cluster, h100: ResourceFlavor) -> None:
    rack(north, h100, "r1")
    loner = browser_of(make_user("loner"))

    for address in ("/clusters/", "/clusters/north/", "/clusters/north/nodes/r1-n1/", "/fleet/"):
        assert loner.get(address).status_code == 200


@pytest.mark.parametrize("address", ["/clusters/", "/clusters/north/", "/clusters/north/nodes/r1-n1/", "/fleet/"])
def test_a_visitor_is_sent_to_sign_in(client: Client, north: Cluster, h100: ResourceFlavor, address: str) -> None:
    rack(north, h100, "r1")

    assert client.get(address).headers["Location"].startswith("/sign-in/")


@pytest.mark.parametrize(
    "address", ["/clusters/south/", "/clusters/north/nodes/nobody/", "/clusters/south/nodes/r1-n1/"]
)
def test_what_never_was_is_missing(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor, address: str
) -> None:
    rack(north, h100, "r1")

    assert browser_of(bob).get(address).status_code == 404


def test_the_map_shows_how_busy_each_gpu_is(
    browser_of: Browser, bob: User, team: Team, north: Cluster, h100: ResourceFlavor
) -> None:
    (node,) = rack(north, h100, "r1")
    hold(make_job(team, bob), node, gpus=4, utils=(97.0, 33.0, 1.0))
    NodeAccelerator.objects.update(foreign=1, allocatable=7)

    page = browser_of(bob).get("/clusters/north/")

    assertContains(page, "8 GPUs: 2 free, 3 busy, 1 held but idle, 1 fault, 1 used outside Muster")
    assertContains(page, "block <bdi>b1</bdi>")
    assertContains(page, "rack <bdi>r1</bdi>")
    assertContains(page, '<i class="m-gpu m-u5" title="train-')
    assertContains(page, ", 97 %")
    # 97, 33 and 1 per cent, by hand
    assertContains(page, "<bdi>44 %</bdi>")


def test_only_jobs_that_the_person_may_see_are_named(
    browser_of: Browser, bob: User, charlie: User, admin: User, team: Team, north: Cluster, h100: ResourceFlavor
) -> None:
    (node,) = rack(north, h100, "r1")
    job = make_job(team, bob, name="secret-plan", number=7)
    hold(job, node)

    for address in ("/clusters/north/", "/clusters/north/nodes/r1-n1/", f"/clusters/north/?job={job.uid}"):
        for insider in (bob, admin):
            page = browser_of(insider).get(address)
            assertContains(page, "secret-plan-7")
            assertContains(page, f'href="/jobs/{job.uid}/"')
        page = browser_of(charlie).get(address)
        assertNotContains(page, "secret-plan")
        assertNotContains(page, f"/jobs/{job.uid}")
        assertNotContains(page, "data-mine")
        assertContains(page, "vision")


def test_a_job_is_marked_on_its_nodes(
    browser_of: Browser, bob: User, team: Team, north: Cluster, h100: ResourceFlavor
) -> None:
    first, second, _other = rack(north, h100, "r1", 3)
    job = make_job(team, bob, name="sft", number=2, workers=2, gpus_per_worker=8)
    hold(job, first)
    hold(job, second)

    page = browser_of(bob).get(f"/clusters/north/?job={job.uid}")

    assertContains(page, "data-mine", 2)
    assertContains(page, "2 nodes, 16 GPUs")
    assertContains(browser_of(bob).get("/clusters/north/?job=nothing"), "No job of yours by that id")


def test_slots_count_whole_free_nodes_within_one_rack(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor
) -> None:
    rack(north, h100, "r1", 3)
    rack(north, h100, "r2", 2)
    NodeAccelerator.objects.filter(node__name="r2-n2").update(held=1)

    page = browser_of(bob).get("/clusters/north/")

    # four whole nodes, three of them in one rack: 4 x 8, one pair, no four
    assertContains(page, "8 GPU x 4")
    assertContains(page, "16 GPU x 1")
    assertContains(page, "32 GPU x 0")


def test_a_flavor_can_be_shown_alone(browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor) -> None:
    rack(north, h100, "r1")
    rack(north, make_flavor("l40s"), "r2")

    page = browser_of(bob).get("/clusters/north/?flavor=l40s")

    assertContains(page, "r2-n1")
    assertNotContains(page, "r1-n1")
    assertContains(page, "of 8 GPUs")


def test_a_cluster_without_levels_and_one_without_nodes_have_a_map(
    browser_of: Browser, bob: User, h100: ResourceFlavor
) -> None:
    make_node(make_cluster("flat"), flavor=h100, name="only")
    make_cluster("empty")

    assertContains(browser_of(bob).get("/clusters/flat/"), "all nodes")
    assertContains(browser_of(bob).get("/clusters/empty/"), "None with such GPUs was listed yet")


def test_the_fleet_adds_up_all_clusters(
    browser_of: Browser, bob: User, team: Team, north: Cluster, h100: ResourceFlavor
) -> None:
    busy, _free = rack(north, h100, "r1", 2)
    make_node(make_cluster("flat"), flavor=h100, name="only", is_cordoned=True)
    hold(make_job(team, bob), busy, utils=(90.0, 70.0))

    page = browser_of(bob).get("/fleet/")

    assertContains(page, "of 24 GPUs")
    assertContains(page, "<bdi>80 %</bdi>")
    assertContains(page, "<bdi>1 x 8</bdi>")
    for name in ("r1-n1", "only"):
        assertContains(page, name)
    assertNotContains(browser_of(bob).get("/fleet/?cluster=flat"), "r1-n1")
    assertContains(browser_of(bob).get("/fleet/?view=table"), "block <bdi>b1</bdi> / </span>rack <bdi>r1</bdi>")


def test_a_fleet_too_large_for_single_gpus_shows_one_cell_a_node(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusters.views.fleet.MOST_CELLS", 15)
    rack(north, h100, "r1", 2)
    NodeAccelerator.objects.filter(node__name="r1-n1").update(allocatable=7)

    page = browser_of(bob).get("/fleet/")

    assertContains(page, "1 GPU: 1 fault")
    assertContains(page, "1 GPU: 1 free")
    assertContains(page, "One cell is one node")


def test_the_page_of_a_node_shows_all_of_it(
    browser_of: Browser, bob: User, team: Team, north: Cluster, h100: ResourceFlavor
) -> None:
    (node,) = rack(north, h100, "r1", conditions={"Ready": {"status": "True", "reason": "KubeletReady"}})
    Node.objects.update(taints=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}])
    hold(make_job(team, bob, name="sft", number=1), node, gpus=2, utils=(97.0, 12.0))
    node.events.create(at=clock.now(), kind="cordoned")

    page = browser_of(bob).get("/clusters/north/nodes/r1-n1/")

    for text in ("A driver is loaded", "KubeletReady", "dedicated=ml:NoSchedule", "t/rack=r1", "sft-1", "cordoned"):
        assertContains(page, text)
    assertContains(page, "<bdi>97 %</bdi>")
    # two of eight GPUs, 16 of 96 cores
    assertContains(page, "<bdi>6</bdi> of <bdi>8</bdi>")
    assertContains(page, "<bdi>80</bdi> of <bdi>96</bdi> cores free")


def test_a_node_that_left_keeps_its_page(browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor) -> None:
    rack(north, h100, "r1", gone_at=clock.now())

    assertContains(browser_of(bob).get("/clusters/north/nodes/r1-n1/"), "Left the cluster")
    assertNotContains(browser_of(bob).get("/clusters/north/"), "r1-n1")


@pytest.mark.parametrize(
    "address", ["/clusters/", "/clusters/north/", "/clusters/north/nodes/r1-n1/", "/fleet/", "/fleet/?view=table"]
)
def test_a_page_takes_the_same_few_queries_for_few_and_many(
    browser_of: Browser,
    bob: User,
    team: Team,
    north: Cluster,
    h100: ResourceFlavor,
    address: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for name in ("r1", "r2", "r3"):
        for node in rack(north, h100, name, 4):
            hold(make_job(make_team(), bob), node, utils=(50.0,) * 8)
    hold(make_job(team, bob), rack(make_cluster("flat"), h100, "r9")[0])
    browser = browser_of(bob)

    with django_assert_max_num_queries(10):
        assert browser.get(address).status_code == 200


def test_live_updates_bring_the_cells_alone(
    browser_of: Browser, bob: User, north: Cluster, h100: ResourceFlavor
) -> None:
    (node,) = rack(north, h100, "r1")

    page = browser_of(bob).get("/clusters/north/", headers={"HX-Request": "true"})

    assertNotContains(page, "<html")
    assertContains(page, f'id="node-{node.pk}" data-v=')
    full = browser_of(bob).get("/clusters/north/")
    assertContains(full, f'data-live="/live/?topic=cluster%3A{north.pk}')
