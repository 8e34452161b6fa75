"""Many rows by one statement say what the ORM would have written, one by one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct

from clusters.models import Cluster, Node, NodeEvent, ObservedPod
from portal.core import upsert as upsert_module
from portal.core.upsert import upsert
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db
UNIQUE = ("cluster_id", "name")
NOW = datetime(2026, 12, 1, 10, 0, 0, 123_456, tzinfo=UTC)
AWKWARD = "100 % of 'a' \\ \"b\"\n\t{c} Grüße 🎛 %s"


class Named(Struct):
    name: str
    labels: dict[str, str]


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster("north")


def nodes(cluster: Cluster, *names: str, **same: Any) -> dict[str, int]:
    rows = [Named(name, {"rack": name}) for name in names]
    found = upsert(Node, rows, ("name", "labels"), same={"cluster_id": cluster.pk, **same}, unique=UNIQUE)
    return {name: key for key, _cluster, name in found}


def test_a_new_row_gets_the_defaults_of_its_model(cluster: Cluster) -> None:
    keys = nodes(cluster, "n1", "n2", uid="u")

    plain = Node.objects.create(cluster=cluster, name="n3", uid="u", labels={"rack": "n3"})
    written = Node.objects.get(name="n2")
    assert keys == {node.name: node.pk for node in Node.objects.exclude(pk=plain.pk)}
    assert written.created_at.date() == plain.created_at.date()
    kept = [field.name for field in Node._meta.concrete_fields if field.name not in ("id", "name", "labels")]
    for name in set(kept) - {"created_at", "updated_at"}:
        assert getattr(written, name) == getattr(plain, name), name


def test_an_old_row_keeps_what_is_not_given(cluster: Cluster) -> None:
    old = Node.objects.create(cluster=cluster, name="n1", uid="before", quarantine_reason="broken", pods=110)
    elsewhere = Node.objects.create(cluster=make_cluster("south"), name="n1", uid="other")

    assert nodes(cluster, "n1", uid="after") == {"n1": old.pk}

    old.refresh_from_db()
    assert (old.uid, old.labels, old.quarantine_reason, old.pods) == ("after", {"rack": "n1"}, "broken", 110)
    elsewhere.refresh_from_db()
    assert (elsewhere.uid, elsewhere.labels) == ("other", {})


def test_values_of_every_kind_arrive_as_they_are(cluster: Cluster) -> None:
    view: dict[str, Any] = {"uid": "u", "name": AWKWARD, "rank": None, "is_ready": True, "gpus": 8, "message": AWKWARD}
    view |= {"foreign_gates": [AWKWARD, {"a": [None, 1.5]}], "created_at": NOW, "phase": "Running", "attempt": 2}
    same = {"cluster_id": cluster.pk, "seen_at": NOW, "gone_at": None, "run": AWKWARD[:60], "namespace": "team"}

    upsert(ObservedPod, [view], list(view), same=same, unique=("cluster_id", "uid"))

    row = ObservedPod.objects.get()
    assert {name: getattr(row, name) for name in (*view, *same)} == {**view, **same}


def test_more_rows_than_a_statement_takes_are_all_written(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upsert_module, "_ROWS", 2)

    keys = nodes(cluster, *(f"n{number}" for number in range(5)))

    assert {node.name: node.pk for node in Node.objects.all()} == keys
    assert len(keys) == 5


def test_without_unique_columns_rows_are_only_added(cluster: Cluster) -> None:
    (key,) = nodes(cluster, "n1").values()
    line = {"node_id": key, "kind": "gone"}

    for _time in range(2):
        upsert(NodeEvent, [line], list(line), same={"at": NOW})

    assert list(NodeEvent.objects.values_list("kind", "at", "detail")) == [("gone", NOW, {})] * 2
    assert upsert(NodeEvent, [], list(line), same={"at": NOW}) == []
