"""Whatever the body of a submission, a preview or a scale names wrongly is refused by its field, with its own code."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import Cluster
from jobs.jobspec.checks import LABELS_MAX, REPLICAS_MAX
from jobs.models import Job
from portal.core import clock
from portal.identity.models import Membership, Team, TeamSecret, User
from tests.factories import make_flavor, make_job, make_membership, make_priority_class, make_queue, make_team
from tests.jobs.scenes import Supply

Rest = Callable[[User], APIClient]
Errors = set[tuple[str, str]]
pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, Any] = {"name": "vit", "image": "team/torch:2.9"}
WAYS = ("jobs/", "preview/", "jobs/batch/")
NO_TEXT: list[Any] = [{"x": 1}, ["vision"], [], {}, True, False, 0, 1, 1.5]
NO_MAP: list[Any] = [[], [1], "text", "", 1, True, None]


def post(client: APIClient, way: str, spec: Any) -> Any:
    text = json.dumps([spec] if way == "jobs/batch/" else spec)
    return client.generic("POST", f"/api/v1/{way}", text, content_type="application/json")


def post_batch(client: APIClient, body: Any) -> Any:
    return client.generic("POST", "/api/v1/jobs/batch/", json.dumps(body), content_type="application/json")


def errors_of(said: Any, way: str = "") -> Errors:
    """Return field and code of each error; the fields of a batch are those of its one item."""
    place = "[0]." if "batch" in way else ""
    return {(error["field"].removeprefix(place), error["code"]) for error in said.json()["errors"]}


@pytest.mark.parametrize("way", WAYS)
def test_a_team_that_is_no_text_is_never_taken_for_the_default_one(
    alice: User, supply: Supply, api_of: Rest, way: str
) -> None:
    client = api_of(alice)
    for named in NO_TEXT:
        said = post(client, way, {**SPEC, "team": named})
        assert (said.status_code, said.json()["code"]) == (422, "wrong_type"), named
        assert errors_of(said, way) == {("team", "wrong_type")}
    assert not Job.objects.exists()


@pytest.mark.parametrize("named", [None, "", "vision"])
def test_a_team_that_is_left_open_is_the_default_one(alice: User, supply: Supply, api_of: Rest, named: Any) -> None:
    assert post(api_of(alice), "jobs/", {**SPEC, "team": named}).status_code == 201


def test_yaml_names_its_team_as_json_does(
    alice: User, team: Team, other_team: Team, charlie: User, supply: Supply, api_of: Rest
) -> None:
    make_queue(other_team, quota={supply.flavor: 8})
    client = api_of(alice)

    def send(named: object) -> Any:
        text = yaml.safe_dump({**SPEC, "team": named})
        return client.generic("POST", "/api/v1/jobs/", text, content_type="application/yaml")

    assert errors_of(send({"x": 1})) == {("team", "wrong_type")}
    assert errors_of(send(other_team.slug)) == {("team", "unknown_team")}
    make_membership(alice, other_team)
    assert send(other_team.slug).json()["team"] == other_team.slug
    assert [job.team for job in Job.objects.all()] == [other_team]


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"team": "moon"}, "team", "unknown_team"),
        ({"team": "speech"}, "team", "unknown_team"),
        ({"queue": "moon"}, "queue", "unknown_queue"),
        ({"priority": "moon"}, "priority", "unknown_priority"),
        ({"priority": "closed"}, "priority", "priority_not_allowed"),
        ({"accelerators": ["h100", "moon"]}, "accelerators[1]", "unknown_flavor"),
        ({"accelerators": ["a100"]}, "accelerators", "no_quota"),
        ({"clusters": ["moon"]}, "clusters[0]", "unknown_cluster"),
        ({"image_pull_secret": "moon"}, "image_pull_secret", "secret_not_listed"),
        ({"secrets": [{"name": "listed", "key": "b", "env": "B"}]}, "secrets[0].key", "unknown_secret_key"),
        ({"gpus_per_worker": 16}, "gpus_per_worker", "too_many_gpus"),
        (
            {"workers": 2, "volumes": [{"claim": "training-data", "mount_path": "/d"}]},
            "volumes[0].claim",
            "claim_not_shared",
        ),
        ({"parent": "nothing"}, "parent", "unknown_parent"),
        ({"kind": "inference", "replicas": 0}, "replicas", "no_replicas"),
        ({"workers": "2"}, "workers", "wrong_type"),
        ({"wrokers": 2}, "wrokers", "unknown_field"),
    ],
)
def test_each_name_that_stands_for_nothing_has_a_code_of_its_own(
    alice: User, charlie: User, team: Team, supply: Supply, api_of: Rest, fields: Any, field: str, code: str
) -> None:
    make_flavor("a100")
    make_priority_class("closed", 1, is_open=False)
    TeamSecret.objects.create(team=team, name="listed", keys=["a"])
    client = api_of(alice)
    for way in WAYS:
        said = post(client, way, {**SPEC, **fields})
        assert (said.status_code, said.json()["code"]) == (422, code), way
        assert errors_of(said, way) == {(field, code)}
    assert not Job.objects.exists()


def test_faults_of_several_kinds_keep_their_codes_side_by_side(alice: User, supply: Supply, api_of: Rest) -> None:
    unknown = {"queue": "moon", "priority": "moon", "clusters": ["moon"], "parent": "moon"}
    names = post(api_of(alice), "jobs/", {**SPEC, **unknown})
    limits = post(api_of(alice), "jobs/", {**SPEC, "workers": 0, "wrokers": 1})

    assert names.json()["code"] == limits.json()["code"] == "invalid"
    assert errors_of(names) == {
        ("queue", "unknown_queue"),
        ("priority", "unknown_priority"),
        ("clusters[0]", "unknown_cluster"),
        ("parent", "unknown_parent"),
    }
    assert errors_of(limits) == {("workers", "too_small"), ("wrokers", "unknown_field")}


def test_a_foreign_parent_is_as_unknown_as_one_that_never_was(
    alice: User,
    team: Team,
    charlie: User,
    other_team: Team,
    supply: Supply,
    api_of: Rest,
    browser_of: Callable[[User], Client],
) -> None:
    foreign, own = make_job(other_team, charlie), make_job(team, alice)
    client, browser = api_of(alice), browser_of(alice)
    text = yaml.safe_dump(SPEC)
    for way in WAYS:
        answers = [post(client, way, {**SPEC, "parent": uid}) for uid in (foreign.uid, "0" * 12)]
        assert {answer.status_code for answer in answers} == {422}
        assert answers[0].content == answers[1].content
    for address in ("/train/", "/train/preview/", "/train/manifest/"):
        pages = [
            browser.post(address, {"source": "yaml", "yaml": f"{text}parent: '{uid}'\n"})
            for uid in (foreign.uid, "0" * 12)
        ]
        assert {page.status_code for page in pages} == {422}
        assert "parent: Unknown run." in " ".join(pages[0].content.decode().split())
    assert Job.objects.count() == 2
    assert post(client, "jobs/", {**SPEC, "parent": own.uid}).json()["parent"] == own.uid


@pytest.mark.parametrize("body", NO_MAP, ids=repr)
@pytest.mark.parametrize("way", ["jobs/", "preview/", "jobs/{uid}/scale/"])
def test_a_body_that_is_no_object_has_the_wrong_type(
    alice: User, team: Team, supply: Supply, api_of: Rest, way: str, body: Any
) -> None:
    job = make_job(team, alice, kind=Job.Kind.INFERENCE)
    said = post(api_of(alice), way.format(uid=job.uid), body)

    assert (said.status_code, said.json()["code"]) == (422, "wrong_type")


@pytest.mark.parametrize("body", [{}, {"x": 1}, "text", None, 1, [], [SPEC] * 101], ids=lambda body: repr(body)[:20])
def test_a_batch_is_a_list_of_one_to_a_hundred(alice: User, supply: Supply, api_of: Rest, body: Any) -> None:
    said = post_batch(api_of(alice), body)

    assert (said.status_code, said.json()["code"], said.json()["numbers"]) == (422, "invalid_batch", {"most": 100})


@pytest.mark.parametrize(
    ("item", "field", "code", "status"),
    [
        ({**SPEC, "workers": 0}, "[1].workers", "too_small", 422),
        ({**SPEC, "volumes": [{"mount_path": "/d"}]}, "[1].volumes[0].claim", "required", 422),
        ({**SPEC, "queue": "moon"}, "[1].queue", "unknown_queue", 422),
        ({**SPEC, "priority": "moon"}, "[1].priority", "unknown_priority", 422),
        ({**SPEC, "team": "moon"}, "[1].team", "unknown_team", 422),
        ({**SPEC, "team": "zoo"}, "[1]", "not_allowed", 403),
        ([], "[1]", "wrong_type", 422),
        (None, "[1]", "wrong_type", 422),
    ],
)
def test_an_error_of_a_batch_names_the_item(
    alice: User, supply: Supply, api_of: Rest, item: Any, field: str, code: str, status: int
) -> None:
    make_membership(alice, make_team("zoo"), Membership.Role.VIEWER)
    said = post_batch(api_of(alice), [SPEC, item, SPEC])

    assert said.status_code == status
    assert errors_of(said) == {(field, code)}
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        *[({"replicas": text}, "replicas", "wrong_type") for text in ("3", " 2 ", "٣", "x")],
        *[({"replicas": value}, "replicas", "wrong_type") for value in (1.0, True, [3], {"x": 3})],
        ({"replicas": -1}, "replicas", "too_small"),
        ({"replicas": REPLICAS_MAX + 1}, "replicas", "too_big"),
        ({"replicas": 10**40}, "replicas", "too_big"),
        ({"replicas": None}, "replicas", "required"),
        ({}, "replicas", "required"),
        ({"replicas": 3, "workers": 2}, "workers", "unknown_field"),
        ({"replicas": 3, "": 2}, "", "unknown_field"),
    ],
    ids=repr,
)
def test_a_scale_is_read_as_strictly_as_a_jobspec(
    alice: User, team: Team, supply: Supply, api_of: Rest, body: Any, field: str, code: str
) -> None:
    job = make_job(team, alice, kind=Job.Kind.INFERENCE, workload="deployment")
    said = api_of(alice).post(f"/api/v1/jobs/{job.uid}/scale/", body, format="json")

    assert said.status_code == 422
    assert errors_of(said) == {(field, code)}
    assert Job.objects.get().workers == 1


def test_a_service_that_is_being_cancelled_or_is_over_is_not_scaled(
    alice: User, team: Team, supply: Supply, api_of: Rest, browser_of: Callable[[User], Client]
) -> None:
    ends = make_job(team, alice, kind="inference", state="running", cancel_requested_at=clock.now())
    over = make_job(team, alice, kind="inference", state="cancelled", cancel_requested_at=clock.now())
    for job, code in ((ends, "cancel_requested"), (over, "already_over")):
        said = api_of(alice).post(f"/api/v1/jobs/{job.uid}/scale/", {"replicas": 3}, format="json")
        assert (said.status_code, said.json()["code"]) == (409, code)
        assert 'data-dialog-open="scale"' not in browser_of(alice).get(f"/jobs/{job.uid}/").content.decode()
    assert set(Job.objects.values_list("workers", flat=True)) == {1}


# A preview's snapshot sets the isolation of its own transaction.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("claims", "only", "warned"),
    [
        (["shared"], [], {}),
        (["moon"], [], {0: "sim-east, sim-west"}),
        (["shared", "moon"], [], {0: "sim-west", 1: "sim-east, sim-west"}),
        (["west"], ["sim-east"], {0: "sim-east"}),
        (["shared", "west"], [], {0: "sim-west", 1: "sim-east"}),
    ],
)
def test_a_claim_that_no_cluster_has_is_warned_of_and_not_refused(
    alice: User, team: Team, supply: Supply, api_of: Rest, claims: list[str], only: list[str], warned: dict[int, str]
) -> None:
    west = Cluster.objects.create(name="sim-west", server="http://127.0.0.1:1", is_simulated=True)
    west.claims.create(namespace=team.namespace, name="west", access_modes=["ReadWriteMany"])
    spec = {
        **SPEC,
        "clusters": only,
        "volumes": [{"claim": claim, "mount_path": f"/{claim}"} for claim in claims],
    }
    answers = [post(api_of(alice), way, spec) for way in ("preview/", "jobs/")]

    assert [answer.status_code for answer in answers] == [200, 201]
    for answer in answers:
        told = [warning for warning in answer.json()["warnings"] if warning["code"] == "missing_claim"]
        assert [warning["field"] for warning in told] == [f"volumes[{index}].claim" for index in warned]
        for warning, (index, clusters) in zip(told, warned.items(), strict=True):
            assert f"The claim {claims[index]} is not" in warning["message"]
            assert f"on {clusters}:" in warning["message"]


def test_labels_have_one_limit_however_they_come(
    alice: User, supply: Supply, api_of: Rest, browser_of: Callable[[User], Client]
) -> None:
    labels = {f"k{number}": "v" for number in range(LABELS_MAX + 1)}
    full = {key: labels[key] for key in list(labels)[:LABELS_MAX]}
    assert errors_of(post(api_of(alice), "jobs/", {**SPEC, "labels": labels})) == {("labels", "too_many")}
    uid = post(api_of(alice), "jobs/", {**SPEC, "labels": full}).json()["id"]
    browser = browser_of(alice)

    def label(text: str) -> str:
        page = browser.post("/jobs/label/", {"job": uid, "label": text}, follow=True)
        return " ".join(str(message) for message in page.context["messages"])

    assert "more than 32 labels" in label("one=more")
    assert "1 job labelled" in label("k0=other")
    assert "1 job labelled" in label("k0=")
    assert "1 job labelled" in label("one=more")
    assert len(Job.objects.get().labels) == LABELS_MAX


def test_the_guide_names_each_code_that_a_submission_can_get() -> None:
    guide = (ROOT / "docs/user.md").read_text(encoding="utf-8")
    service = (ROOT / "jobs/services/submit.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'refuse\([^\n]*?, "([a-z_]+)"', service)) | {
        "missing_claim",
        "invalid_batch",
        "unknown_team",
    }

    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in guide} == set()
