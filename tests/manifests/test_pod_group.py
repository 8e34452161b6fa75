"""Level L1: the PodGroup of a gang, and the field by which its pods are members."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters.manifests import gang, names
from clusters.manifests.adapters import pod_group
from clusters.manifests.values import Json
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values
from tests.jobspec.documents import GANG, TRAINING
from tests.jobspec.rendered import IDENTITY

GOLDEN = Path(__file__).parent / "golden"
NODES = ("node-a", "node-b", "node-c", "node-d")
SERVERS = {"name": "ps", "workers": 3, "cpu": {"request": "2"}}


def rendered(document: Mapping[str, object], **changes: Any) -> list[Json]:
    spec = parse({**document})
    place = Place(
        accelerator_resource="nvidia.com/gpu",
        code_image="git:1",
        workers=spec.workers,
        plan=NODES[: spec.workers],
        **{"is_grouped": True, **changes},
    )
    return gang.objects(gang_values(spec, IDENTITY, place))


def groups(bodies: list[Json]) -> list[Json]:
    return [body for body in bodies if body["kind"] == "PodGroup"]


def members(bodies: list[Json]) -> list[str]:
    specs = [body["spec"]["template"]["spec"] for body in bodies if body["kind"] == "Job"]
    return [spec["schedulingGroup"]["podGroupName"] for spec in specs if pod_group.is_grouped(spec)]


def test_the_group_is_what_its_golden_file_says() -> None:
    golden = json.loads((GOLDEN / "pod-group.json").read_text(encoding="utf-8"))
    assert groups(rendered(GANG)) == [golden]


@pytest.mark.parametrize("is_born_pinned", [False, True], ids=["on gates", "on the policy"])
def test_nothing_but_the_group_tells_the_levels_apart(is_born_pinned: bool) -> None:
    grouped = rendered(GANG, is_born_pinned=is_born_pinned)
    plain = rendered(GANG, is_born_pinned=is_born_pinned, is_grouped=False)
    assert members(grouped) == [IDENTITY.name]
    without = [body for body in grouped if body["kind"] != "PodGroup"]
    del without[0]["spec"]["template"]["spec"]["schedulingGroup"]
    for bodies in (without, plain):
        del bodies[0]["metadata"]["annotations"][names.label(IDENTITY.domain, "spec-hash")]

    assert without == plain


def test_the_pods_of_all_sets_are_members_of_one_group_that_counts_them_all() -> None:
    bodies = rendered({**GANG, "pod_sets": [SERVERS]})

    (group,) = groups(bodies)
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 7}}}
    assert members(bodies) == [group["metadata"]["name"]] * 2


@pytest.mark.parametrize(
    "document",
    [TRAINING, {**TRAINING, "workload": "pod"}, {**GANG, "workload": "statefulset"}],
    ids=["one worker", "quick run", "stateful set"],
)
def test_what_is_no_gang_of_jobs_has_no_group(document: Mapping[str, object]) -> None:
    bodies = rendered(document)

    assert groups(bodies) == []
    assert "schedulingGroup" not in json.dumps(bodies)


def test_the_group_has_the_priority_of_its_pods() -> None:
    (group,) = groups(rendered(GANG, priority_class_name="high"))

    assert group["spec"]["priorityClassName"] == "high"
