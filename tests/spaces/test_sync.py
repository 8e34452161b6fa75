"""A round on a simulated cluster: what is missing, outdated or altered, and who gets it mended."""

import pytest

from clusters.probe.card import Line, card_of
from clusters.services.findings import write_findings
from portal.core.audit import SYSTEM
from portal.core.models import AuditEvent
from quotas.models import PriorityClass, Quota, Space, Tenancy
from quotas.sync.wanted import guards_of
from quotas.sync.wishes import ask_to_apply, set_guard
from tests.clusters_running import SimulatedCluster
from tests.factories import make_user
from tests.spaces.conftest import World, alter, keep, look, objects_of, states, stored

MISSING, DRIFTED, IN_STEP, UNKNOWN = "missing", "drifted", "in_step", "unknown"


def test_what_nobody_keeps_is_looked_at_and_not_made(world: World, simulated: SimulatedCluster) -> None:
    look(world)

    assert states(world) == {"": MISSING, "vision": MISSING, "speech": MISSING}
    assert stored(simulated, "Namespace", "vision")[0] == 404
    assert not AuditEvent.objects.filter(action="space.applied").exists()


def test_what_is_kept_is_made_whole_and_is_in_step_at_the_next_look(world: World, simulated: SimulatedCluster) -> None:
    keep(world)

    look(world)

    assert states(world) == {"": IN_STEP, "vision": IN_STEP, "speech": IN_STEP}
    hard = stored(simulated, "ResourceQuota", "vision")[1]["spec"]["hard"]
    assert hard == {"requests.nvidia.com/gpu": "24", "requests.nvidia.com/mig-1g.10gb": "4"}
    assert set(stored(simulated, "ResourceQuota", "speech")[1]["spec"]["hard"].values()) == {"0"}
    assert AuditEvent.objects.filter(action="space.applied").count() == 3
    Tenancy.objects.update(is_kept=False)
    look(world)
    assert set(states(world).values()) == {IN_STEP}


def test_a_new_quota_is_carried_over_where_spaces_are_kept(world: World, simulated: SimulatedCluster) -> None:
    keep(world)
    look(world)
    Quota.objects.filter(nominal=8).update(nominal=1_000)

    Tenancy.objects.update(is_kept=False)
    look(world)
    assert objects_of(world, world.vision)["ResourceQuota"]["state"] == "outdated"
    assert states(world)["vision"] == DRIFTED
    keep(world)
    look(world)

    assert states(world)["vision"] == IN_STEP
    assert stored(simulated, "ResourceQuota", "vision")[1]["spec"]["hard"]["requests.nvidia.com/gpu"] == "2008"


@pytest.mark.parametrize(
    ("kind", "patch", "path"),
    [
        ("ResourceQuota", {"spec": {"hard": {"pods": "0"}}}, "spec.hard.pods"),
        ("ResourceQuota", {"spec": {"hard": {"requests.nvidia.com/gpu": "999"}}}, "spec.hard.requests.nvidia.com/gpu"),
        ("NetworkPolicy", {"spec": {"ingress": [{}]}}, "spec.ingress"),
        ("LimitRange", {"spec": {"limits": []}}, "spec.limits"),
        (
            "Namespace",
            {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
            "labels.pod-security.kubernetes.io/enforce",
        ),
        ("Namespace", {"metadata": {"labels": {"muster.internal/tenant": None}}}, "labels.muster.internal/tenant"),
    ],
)
def test_what_somebody_changed_is_told_by_field_and_waits_for_a_person(
    world: World, simulated: SimulatedCluster, kind: str, patch: dict[str, object], path: str
) -> None:
    keep(world)
    look(world)
    alter(simulated, kind, "vision", patch)

    look(world)
    seen = objects_of(world, world.vision)[kind]
    assert (seen["state"], [field[0] for field in seen["fields"]]) == ("altered", [path])
    assert states(world) == {"": IN_STEP, "vision": DRIFTED, "speech": IN_STEP}

    ask_to_apply(actor=SYSTEM, cluster=world.cluster, team=world.vision)
    look(world)
    assert states(world)["vision"] == IN_STEP
    assert not Space.objects.filter(asked_at__isnull=False).exists()
    assert AuditEvent.objects.filter(action="space.applied").latest("id").after["objects"] == [
        f"{kind} {'vision' if kind == 'Namespace' else 'muster'}"
    ]


def test_labels_of_others_are_neither_drift_nor_taken_away(world: World, simulated: SimulatedCluster) -> None:
    keep(world)
    look(world)
    alter(simulated, "Namespace", "vision", {"metadata": {"labels": {"cost-center": "12", "muster.internal/x": "1"}}})

    look(world)
    assert [field[0] for field in objects_of(world, world.vision)["Namespace"]["fields"]] == [
        "labels.muster.internal/x"
    ]
    ask_to_apply(actor=SYSTEM, cluster=world.cluster, team=world.vision)
    look(world)

    labels = stored(simulated, "Namespace", "vision")[1]["metadata"]["labels"]
    assert labels["cost-center"] == "12"
    assert "muster.internal/x" not in labels


def test_a_namespace_that_was_there_before_is_adopted_by_a_person_alone(
    world: World, simulated: SimulatedCluster
) -> None:
    simulated.request("POST", "/api/v1/namespaces", {"metadata": {"name": "vision"}})
    keep(world)

    look(world)
    assert objects_of(world, world.vision)["Namespace"]["state"] == "altered"
    ask_to_apply(actor=SYSTEM, cluster=world.cluster, team=world.vision)
    look(world)

    assert states(world)["vision"] == IN_STEP


def test_a_class_with_another_value_is_made_anew_since_its_value_cannot_change(
    world: World, simulated: SimulatedCluster
) -> None:
    keep(world)
    look(world)
    uid = stored(simulated, "PriorityClass", "research")[1]["metadata"]["uid"]
    PriorityClass.objects.filter(name="research").update(value=20_000)

    look(world)

    made = stored(simulated, "PriorityClass", "research")[1]
    assert (made["value"], made["metadata"]["uid"] != uid) == (20_000, True)
    assert states(world)[""] == IN_STEP


def test_a_missing_right_is_told_beside_the_object_and_stops_no_other(
    world: World, simulated: SimulatedCluster
) -> None:
    keep(world)
    denied = [{"verb": "create", "group": "networking.k8s.io", "resource": "networkpolicies"}]
    simulated.control("PUT", "/simulated/rights", {"denied": denied})

    look(world)

    seen = objects_of(world, world.vision)
    assert (seen["NetworkPolicy"]["state"], seen["ResourceQuota"]["state"]) == ("missing", "in_step")
    assert "cannot create resource" in seen["NetworkPolicy"]["error"]


def test_a_kind_that_may_not_be_read_is_not_known_and_not_written(world: World, simulated: SimulatedCluster) -> None:
    keep(world)
    denied = [{"verb": "list", "group": "", "resource": kind} for kind in ("resourcequotas", "namespaces")]
    simulated.control("PUT", "/simulated/rights", {"denied": denied})

    look(world)

    seen = objects_of(world, world.vision)
    assert (seen["Namespace"]["state"], seen["ResourceQuota"]["state"]) == ("unknown", "unknown")
    assert stored(simulated, "Namespace", "vision")[0] == 404


def test_an_outage_leaves_what_was_seen_before(world: World, simulated: SimulatedCluster) -> None:
    keep(world)
    look(world)
    checked_at = Tenancy.objects.get().checked_at
    simulated.control("POST", "/simulated/outage", {"seconds": 60})

    look(world)

    assert set(states(world).values()) == {IN_STEP}
    assert Tenancy.objects.get().checked_at == checked_at
    assert Tenancy.objects.get().error


def test_a_look_that_finds_nothing_new_writes_no_space(world: World) -> None:
    look(world)
    before = list(Space.objects.order_by("pk").values_list("pk", "since"))

    look(world)

    assert list(Space.objects.order_by("pk").values_list("pk", "since")) == before


def test_the_page_of_the_cluster_says_how_many_stand_how_and_a_round_of_the_probe_keeps_it(world: World) -> None:
    look(world)
    write_findings(cluster=world.cluster, findings=[], is_whole_round=True)

    line = spaces_line(world, "root")
    assert (line.severity, line.sentence) == (
        "warning",
        "Of 3, 0 are in step, 0 drifted, 3 missing, 0 not known.",
    )
    keep(world)
    look(world)
    line = spaces_line(world, "boss")
    assert (line.severity, line.sentence[:20]) == ("ok", "All 3 are in step: n")


def spaces_line(world: World, name: str) -> Line:
    """The line about spaces, as an administrator of this name reads it."""
    lines = card_of(world.cluster.findings.all(), make_user(name, is_superuser=True))
    return next(line for line in lines if line.code == "spaces")


GUARDS = "/apis/admissionregistration.k8s.io/v1"


def guards_line(world: World) -> tuple[str, str]:
    """Severity of the finding about policies, and what it is."""
    row = world.cluster.findings.get(code="guards")
    return row.severity, row.numbers["is"]


def test_the_policies_that_are_wanted_are_found_missing_pasted_weakened_and_left_behind(
    world: World, simulated: SimulatedCluster
) -> None:
    look(world)
    assert guards_line(world) == ("ok", "off")
    set_guard(actor=SYSTEM, cluster=world.cluster, guard="audit", version=1)
    look(world)
    assert guards_line(world) == ("warning", "differs")
    assert not [each for each in AuditEvent.objects.filter(action="space.applied") if "Policy" in str(each.after)]

    bodies = guards_of(world.cluster, "audit")
    for body in bodies:
        plural = "validatingadmissionpolicies" if "Binding" not in body["kind"] else "validatingadmissionpolicybindings"
        assert simulated.request("POST", f"{GUARDS}/{plural}", body)[0] == 201
    look(world)
    assert guards_line(world) == ("ok", "in_place")

    set_guard(actor=SYSTEM, cluster=world.cluster, guard="deny", version=2)
    look(world)
    differs = world.cluster.findings.get(code="guards").numbers["differs"]
    assert {(kind, state) for kind, _name, state in differs} == {("ValidatingAdmissionPolicyBinding", "outdated")}

    set_guard(actor=SYSTEM, cluster=world.cluster, guard="off", version=3)
    look(world)
    assert guards_line(world) == ("warning", "left")


def test_policies_that_may_not_be_read_are_not_known(world: World, simulated: SimulatedCluster) -> None:
    set_guard(actor=SYSTEM, cluster=world.cluster, guard="deny", version=1)
    denied = [{"verb": "list", "group": "admissionregistration.k8s.io"}]
    simulated.control("PUT", "/simulated/rights", {"denied": denied})

    look(world)

    assert guards_line(world) == ("unknown", "forbidden")
