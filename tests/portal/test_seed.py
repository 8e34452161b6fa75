"""The demo's data: made once and quickly; what people changed since then stays."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from clusters.models import Cluster, TopologyLevel
from clusters.simulated.fleet import mixed
from jobs.models import Job, JobEvent
from portal.core.errors import InvalidInputError
from portal.core.models import AuditEvent
from portal.identity.models import ApiToken, Membership, Organization, Team, User
from portal.seed.organisation import LOGINS
from portal.seed.workload import refill
from quotas.models import Cohort, PriorityClass, PriorityGrant, Queue, Quota, Space, Tenancy
from tests.factories import make_cluster, make_flavor

pytestmark = pytest.mark.django_db
MADE = (Organization, Team, User, Membership, Cohort, Queue, Quota, PriorityClass, PriorityGrant)
MADE_TOO = (Cluster, TopologyLevel, Job, JobEvent, ApiToken, AuditEvent)
Seed = Callable[[], dict[str, Any]]


@pytest.fixture(autouse=True)
def _a_demo(settings: Settings) -> None:
    settings.DEMO = True
    settings.MUSTER_ALLOW_PLAIN_HTTP = True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "demo.json"
    entries = []
    for number, name in enumerate(("sim-east", "sim-west")):
        fleet = tmp_path / f"{name}.json"
        fleet.write_text(json.dumps(mixed(name, 8)))
        server = f"http://127.0.0.1:{4001 + number}"
        entries.append({"name": name, "server": server, "token": f"token-of-{name}", "fleet": str(fleet)})
    path.write_text(json.dumps({"clusters": entries}))
    return path


@pytest.fixture
def seed(file: Path) -> Seed:
    """Run the command; return what it tells."""

    def run() -> dict[str, Any]:
        out = StringIO()
        call_command("seed_demo", clusters=file, stdout=out)
        told: dict[str, Any] = json.loads(out.getvalue())
        return told

    return run


def rows() -> dict[str, list[Any]]:
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in (*MADE, *MADE_TOO)}


def test_a_second_seed_changes_nothing_and_asks_little(seed: Seed) -> None:
    first = seed()
    before = rows()
    with CaptureQueriesContext(connection) as asked:
        second = seed()

    assert rows() == before
    assert all(before.values())
    assert first["token"].startswith("muster_")
    assert "token" not in second
    reads = [query["sql"] for query in asked if "SAVEPOINT" not in query["sql"]]
    assert len(reads) == 4, reads
    assert all(sql.startswith("SELECT") for sql in reads)


def test_a_first_seed_hashes_one_password_and_asks_little(seed: Seed) -> None:
    with CaptureQueriesContext(connection) as asked:
        seed()

    assert len(asked) < 200, len(asked)
    assert len(set(User.objects.values_list("password", flat=True))) == 1
    for login in LOGINS:
        assert authenticate(username=login.user, password=login.password) == User.objects.get(username=login.user)


def test_a_cluster_of_the_demo_is_registered_as_by_hand(seed: Seed) -> None:
    seed()

    events = AuditEvent.objects.filter(object_type="cluster").order_by("pk")
    assert [(event.action, event.actor, event.object_label) for event in events] == [
        ("cluster.registered", "muster", "sim-east"),
        ("cluster.registered", "muster", "sim-west"),
    ]
    east = Cluster.objects.get(name="sim-east")
    assert (east.token, east.is_simulated) == ("token-of-sim-east", True)
    assert east.exporter_url == "http://127.0.0.1:4001/exporter/{node}/metrics"
    assert [level.name for level in east.levels.all()] == ["zone", "block", "rack"]


def test_the_spaces_of_the_demos_clusters_are_kept_and_applied_as_an_administrator_asks(seed: Seed) -> None:
    seed()

    assert list(Tenancy.objects.values_list("is_kept", flat=True)) == [True, True]
    asked = Space.objects.filter(asked_at__isnull=False)
    assert asked.count() == 2 * (Team.objects.count() + 1)
    actions = AuditEvent.objects.filter(object_type="space").values_list("action", flat=True)
    assert set(actions) == {"space.keeping_changed", "space.apply_asked"}


def test_a_cluster_at_another_port_is_followed_and_the_log_says_so(seed: Seed, file: Path) -> None:
    seed()
    Cluster.objects.update(is_enabled=False)  # an administrator's wish
    TopologyLevel.objects.filter(name="zone").delete()
    file.write_text(file.read_text().replace("4001", "4999"))
    seed()

    east = Cluster.objects.get(name="sim-east")
    assert (east.server, east.is_enabled) == ("http://127.0.0.1:4999", False)
    assert east.exporter_url.startswith("http://127.0.0.1:4999/")
    assert [level.name for level in east.levels.all()] == ["block", "rack"]
    changed = AuditEvent.objects.get(action="cluster.updated")
    assert (changed.object_label, changed.after["token"]) == ("sim-east", "replaced")
    assert "token-of" not in json.dumps(list(AuditEvent.objects.values("before", "after")))


@pytest.fixture
def kube(tmp_path: Path) -> Path:
    """The demo's file about a real control plane, and the kubeconfig that it names."""
    kubeconfig = tmp_path / "kube1.kubeconfig"
    _write_kubeconfig(kubeconfig, "first")
    path = tmp_path / "kube.json"
    levels = [["rack", "muster.example/rack"]]
    path.write_text(json.dumps({"clusters": [{"name": "kube1", "kubeconfig": str(kubeconfig), "levels": levels}]}))
    return path


def _write_kubeconfig(path: Path, token: str) -> None:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(document))


def test_a_real_control_plane_is_registered_with_its_spaces_kept_and_by_passes_refused(file: Path, kube: Path) -> None:
    call_command("seed_demo", clusters=file, kube=kube, stdout=StringIO())

    cluster = Cluster.objects.get(name="kube1")
    assert (cluster.token, cluster.is_simulated, cluster.has_fake_nodes, cluster.exporter_url) == (
        "first",
        True,
        True,
        "",
    )
    assert [level.name for level in cluster.levels.all()] == ["rack"]
    assert (cluster.tenancy.is_kept, cluster.tenancy.guard) == (True, "deny")


def test_a_control_plane_of_another_start_is_followed_and_one_that_is_gone_takes_no_part(
    file: Path, kube: Path, tmp_path: Path
) -> None:
    call_command("seed_demo", clusters=file, kube=kube, stdout=StringIO())
    call_command("seed_demo", clusters=file, stdout=StringIO())
    assert not Cluster.objects.get(name="kube1").is_enabled

    _write_kubeconfig(tmp_path / "kube1.kubeconfig", "second")
    call_command("seed_demo", clusters=file, kube=kube, stdout=StringIO())

    cluster = Cluster.objects.get(name="kube1")
    assert (cluster.token, cluster.is_enabled) == ("second", True)
    assert set(Cluster.objects.filter(is_enabled=True).values_list("name", flat=True)) == {
        "kube1",
        "sim-east",
        "sim-west",
    }


def test_the_demo_does_not_take_over_a_real_cluster_of_that_name(seed: Seed) -> None:
    make_cluster("sim-east", server="https://k8s.example", is_simulated=False)
    with pytest.raises(InvalidInputError, match="already exists"):
        seed()

    assert Cluster.objects.get().server == "https://k8s.example"


def test_what_people_changed_in_the_demo_stays(seed: Seed) -> None:
    seed()
    Queue.objects.filter(name="vision").update(name="vision-main")
    Membership.objects.filter(user__username="bob").delete()
    Quota.objects.filter(queue__name="speech").delete()
    before = rows()
    seed()

    assert rows() == before


def test_the_demo_takes_what_the_installation_has_already(seed: Seed) -> None:
    flavor = make_flavor("h100", label_value="NVIDIA-H100-80GB-HBM3", rank=7)
    seed()

    flavor.refresh_from_db()
    assert flavor.rank == 7
    assert Quota.objects.filter(flavor=flavor).count() == 5


def test_the_made_up_past_is_numbered_in_its_order_and_says_that_it_is_made_up(seed: Seed) -> None:
    seed()

    runs = list(Job.objects.filter(name="vit-large").order_by("number"))
    assert [job.number for job in runs] == list(range(1, len(runs) + 1))
    assert [job.created_at for job in runs] == sorted(job.created_at for job in runs)
    assert Job.objects.filter(is_synthetic=True, state__in=Job.FINAL).count() == Job.objects.count() == 60
    assert set(JobEvent.objects.values_list("code", flat=True)) == {"synthetic"}
    assert not Job.objects.exclude(started_at__gte=F("created_at"), finished_at__gte=F("started_at")).exists()


def test_the_steady_load_never_grows_over_the_quota_that_the_tour_of_the_demo_needs(seed: Seed) -> None:
    seed()
    live = Job.objects.filter(is_synthetic=True).exclude(state__in=Job.FINAL)
    for _each in range(20):
        refill()
        # The short ones end again and again, the long ones stay.
        live.exclude(name__in=("vit-large", "distill", "tts-finetune")).update(state=Job.State.SUCCEEDED)
    refill()

    names = list(live.values_list("name", flat=True))
    assert len(names) == len(set(names))
    held = sum(job.gpus for job in live.filter(team__slug="vision") if job.spec["accelerators"] == ["h100"])
    tour = 4 * 8
    assert 0 < held <= Quota.objects.get(queue__name="vision", flavor__name="h100").nominal - tour
    assert {"sweep-lr", "asr-base"} & set(names)


def test_only_a_demo_is_seeded(seed: Seed, settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="MUSTER_DEMO"):
        seed()
    assert not User.objects.exists()
