"""Registering a cluster keeps three values of a kubeconfig, encrypted where it must be, and says who did it."""

import pytest
import yaml
from django.db import connection

from clusters.models import Cluster
from clusters.services.registration import Level, register_cluster, set_levels, update_cluster
from portal.core.audit import Actor
from portal.core.errors import InvalidInputError, StaleEditError
from portal.core.models import AuditEvent

pytestmark = pytest.mark.django_db

ADMIN = Actor(name="root", user_id=1)
LEVELS = [Level("block", "topology.example/block"), Level("rack", "topology.example/rack")]


def kubeconfig(token: str = "s3cret-t0ken") -> str:  # noqa: S107 -- a made-up one
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://k8s.example.org:6443"}}],
            "users": [{"name": "c", "user": {"token": token}}],
        }
    )


def registered(**changes: object) -> Cluster:
    values = {"name": "north", "kubeconfig": kubeconfig(), "levels": LEVELS, **changes}
    return register_cluster(actor=ADMIN, **values)  # type: ignore[arg-type]


def test_a_registered_cluster_has_its_levels_and_its_token_is_not_readable_in_the_database() -> None:
    cluster = registered(exporter_url="http://{address}:9400/metrics")

    assert Cluster.objects.get().token == "s3cret-t0ken"
    with connection.cursor() as cursor:
        cursor.execute("SELECT token FROM clusters_cluster WHERE id = %s", [cluster.pk])
        assert "s3cret" not in cursor.fetchone()[0]
    assert list(cluster.levels.values_list("depth", "name")) == [(0, "block"), (1, "rack")]


def test_the_audit_log_knows_the_act_and_not_the_token() -> None:
    cluster = registered()
    update_cluster(actor=ADMIN, cluster=cluster, version=1, kubeconfig=kubeconfig(token="n3w"))

    events = list(AuditEvent.objects.order_by("id"))

    assert [(event.action, event.actor) for event in events] == [
        ("cluster.registered", "root"),
        ("cluster.updated", "root"),
    ]
    assert events[1].after == {"token": "replaced"}
    assert "s3cret" not in str([(event.before, event.after) for event in events])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "North!"}, "name"),
        ({"name": "n" * 41}, "name"),
        ({"name": ""}, "name"),
        ({"kubeconfig": "x"}, "kubeconfig"),
        ({"exporter_url": "file:///etc/passwd"}, "exporter_url"),
        ({"exporter_url": "http://a:b@{node}:9400"}, "exporter_url"),
        ({"exporter_url": "http://{pod}:9400"}, "exporter_url"),
        ({"exporter_url": "http://{node}/" + "x" * 300}, "exporter_url"),
        ({"levels": [Level("node", "a")]}, "levels"),
        ({"levels": [Level("rack", "not a key")]}, "levels"),
        ({"levels": [Level("rack", "a"), Level("rack", "b")]}, "levels"),
        ({"levels": [Level("x", "a"), Level("y", "a")]}, "levels"),
        ({"levels": [Level(f"l{n}", f"k{n}") for n in range(16)]}, "levels"),
        ({"levels": [Level("x" * 21, "a")]}, "levels"),
    ],
)
def test_bad_input_is_refused_by_field_and_leaves_nothing(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        registered(**changes)

    assert list(caught.value.problems) == [field]
    assert Cluster.objects.count() == 0
    assert AuditEvent.objects.count() == 0


def test_a_name_is_given_once() -> None:
    registered()

    with pytest.raises(InvalidInputError) as caught:
        registered()

    assert "name" in caught.value.problems


def test_an_edit_of_an_older_version_is_stale_and_changes_nothing() -> None:
    cluster = registered()
    update_cluster(actor=ADMIN, cluster=cluster, version=1, is_enabled=False)

    with pytest.raises(StaleEditError) as caught:
        set_levels(actor=ADMIN, cluster=cluster, version=1, levels=[])

    assert caught.value.numbers == {"yours": 1, "current": 2}
    assert cluster.levels.count() == 2


def test_an_edit_leaves_what_the_watcher_writes_alone() -> None:
    cluster = registered()
    stale_copy = Cluster.objects.get()
    Cluster.objects.update(last_error="written meanwhile", kubernetes_version="v1.36.3")

    update_cluster(actor=ADMIN, cluster=stale_copy, version=1, is_enabled=False)

    cluster.refresh_from_db()
    assert (cluster.is_enabled, cluster.last_error) == (False, "written meanwhile")
    assert cluster.kubernetes_version == "v1.36.3"


def test_levels_are_replaced_as_a_whole_and_the_log_shows_both() -> None:
    cluster = registered()

    set_levels(actor=ADMIN, cluster=cluster, version=1, levels=[Level("rack", "k")])

    assert list(cluster.levels.values_list("name", "label_key")) == [("rack", "k")]
    event = AuditEvent.objects.latest("id")
    assert event.before["levels"][0] == ["block", "topology.example/block"]
    assert event.after["levels"] == [["rack", "k"]]
