"""What follows from findings: how gangs start, what is in the audit log, who may ask."""

import pytest

from clusters.models import Cluster, Dispatch, Severity
from clusters.services.findings import Finding, ask_for_checks, write_findings
from portal.core.audit import SYSTEM
from portal.core.errors import DomainError
from portal.core.models import AuditEvent
from tests.factories import make_cluster
from tests.probe.conftest import found

pytestmark = pytest.mark.django_db
IN_PLACE = Finding("policy", Severity.OK, {"is": "in_place"})
ALTERED = Finding("policy", Severity.WARNING, {"is": "altered"})


@pytest.fixture
def north() -> Cluster:
    return make_cluster("north")


def write(cluster: Cluster, *findings: Finding, is_whole_round: bool = False) -> None:
    write_findings(cluster=cluster, findings=findings, is_whole_round=is_whole_round)


def dispatch() -> str:
    return Cluster.objects.get().dispatch


def test_gangs_are_born_pinned_as_long_as_the_policy_is_in_place(north: Cluster) -> None:
    write(north, IN_PLACE)
    write(north, IN_PLACE)
    assert dispatch() == Dispatch.BORN_PINNED
    write(north, ALTERED)
    assert dispatch() == Dispatch.GATES

    events = AuditEvent.objects.order_by("pk").values_list("action", "actor", "before", "after")
    assert list(events) == [
        (
            "cluster.dispatch_changed",
            "muster",
            {"dispatch": "gates"},
            {"dispatch": "born_pinned", "policy": "in_place"},
        ),
        ("cluster.dispatch_changed", "muster", {"dispatch": "born_pinned"}, {"dispatch": "gates", "policy": "altered"}),
    ]


@pytest.mark.parametrize("kind", ["missing", "altered", "forbidden", "not_offered", "", "of_tomorrow"])
def test_nothing_but_a_policy_in_place_lets_gangs_be_born_pinned(north: Cluster, kind: str) -> None:
    Cluster.objects.update(dispatch=Dispatch.BORN_PINNED)

    write(north, Finding("policy", Severity.OK, {"is": kind}))

    assert dispatch() == Dispatch.GATES


def test_a_policy_that_could_not_be_looked_at_changes_nothing(north: Cluster) -> None:
    Cluster.objects.update(dispatch=Dispatch.BORN_PINNED)

    write(north, Finding("policy", Severity.UNKNOWN, {"error": "?"}))
    write(north, Finding("version", Severity.OK), is_whole_round=True)

    assert dispatch() == Dispatch.BORN_PINNED


def test_only_a_whole_round_drops_what_no_check_says_any_more(north: Cluster) -> None:
    write(north, IN_PLACE, Finding("engines", Severity.OK))
    write(north, ALTERED)
    assert found(north).keys() == {"policy", "engines"}

    write(north, IN_PLACE, is_whole_round=True)

    assert found(north) == {"policy": ("ok", {"is": "in_place"})}


def test_another_clusters_findings_are_left_alone(north: Cluster) -> None:
    south = make_cluster("south")
    write(south, ALTERED)

    write(north, IN_PLACE, is_whole_round=True)

    assert found(south) == {"policy": ("warning", {"is": "altered"})}
    assert Cluster.objects.get(name="south").dispatch == Dispatch.GATES


def test_a_disabled_cluster_cannot_be_checked(north: Cluster) -> None:
    Cluster.objects.update(is_enabled=False)

    with pytest.raises(DomainError) as refused:
        ask_for_checks(actor=SYSTEM, cluster=north)

    assert refused.value.code == "cluster_disabled"
    assert Cluster.objects.get().probe_asked_at is None
    assert not AuditEvent.objects.exists()
