"""The rights that the portal asks for: few, and none that leads to more."""

import yaml

from clusters.k8s import gateway
from clusters.manifests import rights
from clusters.manifests.rights import Act
from clusters.manifests.text import to_yaml

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
    asked = (*rights.EVERYWHERE, *rights.IN_TEAMS, *rights.IN_GROUPS, *rights.POLICY, rights.renewal())
    granted = {kind.partition("/")[0] for right in asked for kind in right.resources}

    assert granted <= gateway._PATHS.keys()


def test_objects_come_in_the_order_in_which_they_can_be_created() -> None:
    kinds = [body["kind"] for body in rights.objects(["team-vision"])]

    assert kinds.index("Namespace") < kinds.index("ServiceAccount")
    assert kinds.index("ClusterRole") < kinds.index("ClusterRoleBinding") < kinds.index("RoleBinding")


def test_what_is_optional_is_left_out_unless_asked_for_and_is_tied_to_one_name() -> None:
    plain = {body["metadata"]["name"] for body in rights.objects()}
    bodies = rights.objects(with_policy=True, with_renewal=True)
    optional = [body for body in bodies if body["metadata"]["name"] not in plain]

    assert {body["kind"] for body in optional} == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    names = [rule["resourceNames"] for body in optional for rule in body.get("rules", ())]
    assert names == [["muster-pin"], ["muster-pin"], ["muster"]]


def test_groups_are_granted_in_the_namespaces_of_teams_alone() -> None:
    plain = rights.objects(["team-vision"])
    more = [body for body in rights.objects(["team-vision"], with_groups=True) if body not in plain]

    assert [body["kind"] for body in more] == ["ClusterRole", "RoleBinding"]
    assert more[1]["metadata"] == {"name": rights.GROUPS_ROLE, "namespace": "team-vision"}
    (rule,) = more[0]["rules"]
    assert rule == {"apiGroups": ["scheduling.k8s.io"], "resources": ["podgroups"], "verbs": ["create", "get"]}


MISSING = [
    Act("team-vision", "batch", "jobs", "create"),
    Act("team-vision", "batch", "jobs", "patch"),
    Act("team-vision", "", "pods/log", "get"),
    Act("", "", "nodes", "list"),
    Act("", "", "pods", "list"),
]


def test_what_is_missing_is_granted_exactly_and_to_the_account_that_lacks_it() -> None:
    role, binding, team_role, team_binding = rights.grants(MISSING, "system:serviceaccount:ops:portal")

    assert (role["kind"], role["rules"]) == (
        "ClusterRole", [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}],
    )  # fmt: skip
    assert (team_role["kind"], team_role["metadata"]["namespace"]) == ("Role", "team-vision")
    assert team_role["rules"] == [
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "patch"]},
    ]
    for each, of in ((binding, role), (team_binding, team_role)):
        assert each["subjects"] == [{"kind": "ServiceAccount", "name": "portal", "namespace": "ops"}]
        assert each["roleRef"]["name"] == of["metadata"]["name"]


def test_what_is_missing_another_day_becomes_another_role() -> None:
    today, tomorrow = (rights.grants(acts, "ann")[0]["metadata"]["name"] for acts in (MISSING[:1], MISSING[1:2]))

    assert today != tomorrow
    assert rights.grants(MISSING[:1], "ann")[0]["metadata"]["name"] == today
    assert rights.grants(MISSING[:1], "ann")[1]["subjects"][0]["kind"] == "User"


def test_every_act_is_asked_about_once_with_its_subresource_apart() -> None:
    acts = [act for right in rights.IN_TEAMS for act in right.acts("team-vision")]

    assert len(acts) == len(set(acts)) == 18
    log = next(act for act in acts if act.resource == "pods/log").attributes()
    assert (log["resource"], log["subresource"], log["namespace"]) == ("pods", "log", "team-vision")


def test_the_text_reads_back_as_the_objects_and_has_no_anchors() -> None:
    bodies = rights.objects(["team-vision"], with_policy=True)
    text = to_yaml(bodies)

    assert list(yaml.safe_load_all(text)) == bodies
    assert "&id" not in text
