"""The rights that the portal asks for: few, and none that leads to more."""

from clusters.k8s import gateway
from clusters.manifests import rights

DANGEROUS = {"secrets", "pods/exec", "pods/attach", "pods/binding", "serviceaccounts/token", "*"}


def rules() -> list[dict[str, list[str]]]:
    return [rule for body in rights.objects() if body["kind"] == "ClusterRole" for rule in body["rules"]]


def test_no_rule_leads_beyond_jobs() -> None:
    for rule in rules():
        assert not DANGEROUS & set(rule.get("resources", ()))
        assert "*" not in rule["verbs"]
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_writing_is_granted_by_namespace_and_never_for_the_whole_cluster() -> None:
    bodies = rights.objects(["team-vision", "team-speech"])
    (everywhere,) = [body for body in bodies if body["kind"] == "ClusterRoleBinding"]
    writing = [body for body in bodies if body["kind"] == "RoleBinding"]

    assert everywhere["roleRef"]["name"] == rights.READER_ROLE
    assert all(set(right.verbs) <= {"get", "list", "watch"} for right in rights.EVERYWHERE)
    assert [body["metadata"]["namespace"] for body in writing] == ["team-vision", "team-speech"]
    assert {body["roleRef"]["name"] for body in writing} == {rights.TEAM_ROLE}


def test_every_kind_that_is_granted_is_one_that_the_gateway_knows() -> None:
    granted = {kind.partition("/")[0] for right in (*rights.EVERYWHERE, *rights.IN_TEAMS) for kind in right.resources}

    assert granted <= gateway._PATHS.keys()


def test_objects_come_in_the_order_in_which_they_can_be_created() -> None:
    kinds = [body["kind"] for body in rights.objects(["team-vision"])]

    assert kinds.index("Namespace") < kinds.index("ServiceAccount")
    assert kinds.index("ClusterRole") < kinds.index("ClusterRoleBinding") < kinds.index("RoleBinding")
