"""Level B: the plan in the template, and the policy by which a cluster pins each pod at its creation."""

import copy
import json
from pathlib import Path

import pytest

from clusters.manifests import gang, names
from clusters.manifests.adapters import born_pinned
from clusters.manifests.values import Json
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values
from tests.jobspec.documents import GANG
from tests.jobspec.rendered import IDENTITY

GOLDEN = Path(__file__).parent / "golden"
NODES = ("node-a", "node-b", "node-c", "node-d")


def rendered(*, is_born_pinned: bool) -> Json:
    place = Place(
        accelerator_resource="nvidia.com/gpu",
        code_image="git:1",
        workers=4,
        plan=NODES,
        is_born_pinned=is_born_pinned,
    )
    return gang.job(gang_values(parse(GANG), IDENTITY, place))


def test_the_template_carries_the_plan_and_keeps_the_gate() -> None:
    template = rendered(is_born_pinned=True)["spec"]["template"]

    assert template["metadata"]["annotations"] == {"muster.internal/plan": "node-a,node-b,node-c,node-d"}
    assert template["spec"]["schedulingGates"] == [{"name": "muster.internal/placement"}]


def test_nothing_but_the_plan_tells_the_levels_apart() -> None:
    gated, pinned = rendered(is_born_pinned=False), rendered(is_born_pinned=True)
    del pinned["spec"]["template"]["metadata"]["annotations"]
    for body in (gated, pinned):
        del body["metadata"]["annotations"][names.label(IDENTITY.domain, "spec-hash")]

    assert pinned == gated


def test_the_policy_is_what_its_golden_file_says() -> None:
    golden = json.loads((GOLDEN / "born-pinned.json").read_text(encoding="utf-8"))
    assert born_pinned.objects(names.DOMAIN) == golden


def test_an_installation_with_another_domain_has_another_policy() -> None:
    policy = json.dumps(born_pinned.policy("gpu.example.org"))
    assert "gpu.example.org/plan" in policy
    assert names.DOMAIN not in policy


def test_what_a_server_adds_to_the_metadata_does_not_change_the_fingerprint() -> None:
    policy = born_pinned.policy(names.DOMAIN)
    stored = {**policy, "metadata": {"name": born_pinned.NAME, "uid": "1", "generation": 1}}
    assert born_pinned.fingerprint(stored, names.DOMAIN) == born_pinned.fingerprint(policy, names.DOMAIN)


@pytest.mark.parametrize(
    ("part", "value"),
    [("failurePolicy", "Ignore"), ("matchConditions", []), ("variables", []), ("mutations", [])],
)
def test_a_policy_that_somebody_altered_has_another_fingerprint(part: str, value: object) -> None:
    policy = born_pinned.policy(names.DOMAIN)
    altered = copy.deepcopy(policy)
    altered["spec"][part] = value
    assert born_pinned.fingerprint(altered, names.DOMAIN) != born_pinned.fingerprint(policy, names.DOMAIN)
