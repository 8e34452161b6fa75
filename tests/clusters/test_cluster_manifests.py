"""`manage.py cluster_manifests` prints what a cluster's administrator applies."""

from io import StringIO

import pytest
import yaml
from django.core.management import CommandError, call_command

from clusters.manifests import rights
from clusters.manifests.adapters import born_pinned
from portal.identity.models import Team

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> list[dict[str, object]]:
    out = StringIO()
    call_command("cluster_manifests", *arguments, stdout=out)
    return list(yaml.safe_load_all(out.getvalue()))


def test_it_prints_the_rights_in_the_namespaces_of_all_teams(team: Team, other_team: Team) -> None:
    assert printed() == rights.objects([team.namespace, other_team.namespace])


def test_a_namespace_that_is_named_stands_for_those_of_all_teams(team: Team) -> None:
    assert printed("--namespace", "lab") == rights.objects(["lab"])


@pytest.mark.parametrize("name", ["Bad_NS", "", "-lab", "lab-", "a" * 64, "lab\n- other", "team.lab"])
def test_a_namespace_that_kubernetes_would_refuse_is_refused_by_name(name: str) -> None:
    with pytest.raises(CommandError, match="names no namespace"):
        printed(f"--namespace={name}")


def test_pod_groups_bring_the_right_to_make_them_in_each_namespace(team: Team, other_team: Team) -> None:
    namespaces = [team.namespace, other_team.namespace]

    assert printed("--pod-groups") == rights.objects(namespaces, with_groups=True)


def test_level_b_brings_the_policy_as_the_probe_expects_it() -> None:
    bodies = printed("--level", "B", "--renew-token")

    wanted = {
        each["kind"]: born_pinned.fingerprint(each, "muster.internal")
        for each in born_pinned.objects("muster.internal")
    }
    found = {str(each["kind"]): each for each in bodies}
    assert {kind: born_pinned.fingerprint(found[kind], "muster.internal") for kind in wanted} == wanted
    assert {"muster-policy", "muster-token"} <= {str(each["metadata"]["name"]) for each in bodies}  # type: ignore[index]
