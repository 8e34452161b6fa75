"""Queues, quotas and priorities over REST."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from portal.identity.models import Organization, User
from quotas.models import Cohort, PriorityClass, Queue, Quota
from quotas.services.priority import install_ladder
from quotas.services.usage import reserve
from tests.factories import make_job, make_membership, make_team, make_user
from tests.quotas.conftest import World, give
from tests.quotas.test_policy import REFUSED
from tests.quotas.test_tree_edits import ADMIN

pytestmark = pytest.mark.django_db
API = "/api/v1"
# A body with a NUL is refused as a whole, before any field is looked at.
WITHOUT_NUL = [text for text in REFUSED if "\x00" not in text]


@pytest.fixture
def member(world: World, api_of: Callable[[User], APIClient]) -> APIClient:
    return api_of(make_membership(make_user("mia"), world.team).user)


@pytest.fixture
def administrator(world: World, admin: User, api_of: Callable[[User], APIClient]) -> APIClient:
    return api_of(admin)


@pytest.fixture
def stranger(world: World, api_of: Callable[[User], APIClient]) -> APIClient:
    other = Organization.objects.create(name="Other", slug="other")
    team = make_team("foreign", organization=other)
    Queue.objects.create(name="foreign", team=team, cohort=Cohort.objects.create(name="other", organization=other))
    return api_of(make_membership(make_user("sam"), team, "owner").user)


@pytest.fixture
def quota(world: World) -> Quota:
    return give(world.vision, world.h100, 8)


def test_a_queue_comes_with_its_quota_and_usage(world: World, quota: Quota, member: APIClient) -> None:
    reserve(world.vision.pk, world.h100.pk, 3)

    (listed,) = member.get(f"{API}/queues/").json()["results"]

    assert listed == {
        "id": world.vision.pk,
        "name": "vision",
        "team": "vision",
        "cohorts": ["research", "acme"],
        "is_default": True,
        "is_paused": False,
        "quota": [{"flavor": "h100", "nominal": 8, "used": 3, "left": 5}],
        "version": 1,
    }
    assert member.get(f"{API}/queues/{world.vision.pk}/").json() == listed


def test_another_organizations_rows_are_as_missing_as_those_that_never_were(
    world: World, quota: Quota, stranger: APIClient
) -> None:
    assert [row["name"] for row in stranger.get(f"{API}/queues/").json()["results"]] == ["foreign"]
    assert stranger.get(f"{API}/quotas/").json()["results"] == []
    foreign = stranger.get(f"{API}/queues/{world.vision.pk}/")
    missing = stranger.get(f"{API}/queues/999999/")
    assert (foreign.status_code, foreign.json()) == (404, missing.json())
    assert stranger.get(f"{API}/quotas/{quota.pk}/").status_code == 404


@pytest.mark.parametrize("path", ["queues", "quotas", "priority-classes"])
def test_without_a_token_there_is_no_answer(world: World, path: str) -> None:
    assert APIClient().get(f"{API}/{path}/").status_code == 401


def test_quotas_name_their_owner_and_what_is_in_use(world: World, quota: Quota, member: APIClient) -> None:
    cap = give(world.root, world.h100, 20)
    reserve(world.vision.pk, world.h100.pk, 3)

    rows = member.get(f"{API}/quotas/").json()["results"]

    assert [(row["id"], row["owner_kind"], row["owner"], row["nominal"], row["used"]) for row in rows] == [
        (quota.pk, "queue", "vision", 8, 3),
        (cap.pk, "cohort", "acme", 20, 3),
    ]


def test_an_administrator_changes_an_amount_on_the_version_that_was_seen(
    quota: Quota, administrator: APIClient
) -> None:
    answer = administrator.patch(f"{API}/quotas/{quota.pk}/", {"nominal": 12, "version": 1}, format="json")
    stale = administrator.patch(f"{API}/quotas/{quota.pk}/", {"nominal": 4, "version": 1}, format="json")

    assert (answer.status_code, answer.json()["nominal"], answer.json()["version"]) == (200, 12, 2)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert {key: stale.json()["numbers"][key] for key in ("mine", "mine_version", "stored", "stored_version")} == {
        "mine": 4,
        "mine_version": 1,
        "stored": 12,
        "stored_version": 2,
    }


def test_a_cut_below_use_is_kept_with_a_warning(world: World, quota: Quota, administrator: APIClient) -> None:
    reserve(world.vision.pk, world.h100.pk, 8)

    answer = administrator.patch(f"{API}/quotas/{quota.pk}/", {"nominal": 5, "version": 1}, format="json")

    assert "3 above its 5" in answer.json()["warnings"][0]


def test_children_above_their_parent_are_a_problem_with_both_numbers(
    world: World, quota: Quota, administrator: APIClient
) -> None:
    give(world.root, world.h100, 10)

    answer = administrator.patch(f"{API}/quotas/{quota.pk}/", {"nominal": 11, "version": 1}, format="json")

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "above_parent")
    assert (problem["numbers"]["children"], problem["numbers"]["nominal"]) == (11, 10)
    assert problem["errors"][0]["field"] == "nominal"


@pytest.mark.parametrize("nominal", [*WITHOUT_NUL, -1, 1_000_001, 2**63, 1.5, 8.0, True, None, [8], {"n": 8}])
def test_a_refused_amount_is_an_answer_that_names_its_field(
    quota: Quota, administrator: APIClient, nominal: object
) -> None:
    answer = administrator.patch(f"{API}/quotas/{quota.pk}/", {"nominal": nominal, "version": 1}, format="json")

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "nominal"
    assert Quota.objects.get().nominal == 8


@pytest.mark.parametrize("body", [{}, {"nominal": 8}, {"version": 1}, {"nominal": 8, "version": "x"}, [], "8"])
def test_a_patch_without_amount_or_version_is_refused(quota: Quota, administrator: APIClient, body: object) -> None:
    assert administrator.patch(f"{API}/quotas/{quota.pk}/", body, format="json").status_code == 422


def test_only_administrators_write(world: World, quota: Quota, member: APIClient) -> None:
    install_ladder(actor=ADMIN)
    tries = [
        member.patch(f"{API}/quotas/{quota.pk}/", {"nominal": 9, "version": 1}, format="json"),
        member.post(f"{API}/priority-classes/", {"name": "mine", "value": 5}, format="json"),
        member.patch(f"{API}/priority-classes/production/", {"is_open": True, "version": 1}, format="json"),
        member.delete(f"{API}/priority-classes/production/?version=1"),
    ]

    assert [answer.status_code for answer in tries] == [403] * 4
    assert tries[0].json()["code"] == "not_allowed"


# --- priorities ----------------------------------------------------------------------------------
def test_the_ladder_says_which_of_my_teams_may_use_what(member: APIClient, administrator: APIClient) -> None:
    install_ladder(actor=ADMIN)
    grant = {"teams": ["vision"], "version": 1}
    assert administrator.patch(f"{API}/priority-classes/production/", grant, format="json").status_code == 200

    rows = member.get(f"{API}/priority-classes/").json()["results"]

    assert [(row["name"], row["value"]) for row in rows][:2] == [
        ("platform-critical", 1_000_000),
        ("production", 100_000),
    ]
    assert {row["name"]: row["teams"] for row in rows} == {
        "platform-critical": [],
        "production": ["vision"],
        "production-batch": [],
        "research": ["vision"],
        "standard": ["vision"],
        "development": ["vision"],
    }


def test_a_class_is_made_changed_and_deleted(administrator: APIClient) -> None:
    made = administrator.post(f"{API}/priority-classes/", {"name": "nightly", "value": 50}, format="json")
    changed = administrator.patch(
        f"{API}/priority-classes/nightly/", {"value": 60, "version": made.json()["version"]}, format="json"
    )
    without = administrator.delete(f"{API}/priority-classes/nightly/")
    stale = administrator.delete(f"{API}/priority-classes/nightly/?version=1")
    gone = administrator.delete(f"{API}/priority-classes/nightly/?version=2")

    assert (made.status_code, made.json()["value"]) == (201, 50)
    assert (changed.status_code, changed.json()["value"], changed.json()["version"]) == (200, 60, 2)
    assert [answer.status_code for answer in (without, stale, gone)] == [422, 409, 204]
    assert not PriorityClass.objects.exists()


def test_a_class_in_use_is_not_deleted(world: World, administrator: APIClient) -> None:
    install_ladder(actor=ADMIN)
    make_job(world.team, make_user(), queue=world.vision, priority_class=PriorityClass.objects.get(name="development"))

    answer = administrator.delete(f"{API}/priority-classes/development/?version=1")

    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "system-critical", "value": 5}, "name"),
        ({"name": "Urgent", "value": 5}, "name"),
        ({"name": "x" * 1_000_000, "value": 5}, "name"),
        ({"name": "urgent", "value": 1_000_000_001}, "value"),
        ({"name": "urgent", "value": "1E"}, "value"),
        ({"name": "urgent", "value": 1.5}, "value"),
        ({"name": "urgent"}, "value"),
        ({"name": "urgent", "value": 5, "teams": ["nobody"]}, "teams"),
        ({"name": "urgent", "value": 5, "teams": "vision"}, "teams"),
        ({"name": "urgent", "value": 5, "description": "x" * 201}, "description"),
        ({"name": "urgent", "value": 5, "is_open": "perhaps"}, "is_open"),
    ],
)
def test_a_bad_class_is_refused_with_its_field(administrator: APIClient, body: dict[str, object], field: str) -> None:
    answer = administrator.post(f"{API}/priority-classes/", body, format="json")

    assert answer.status_code == 422
    assert [error["field"].split(".")[0] for error in answer.json()["errors"]] == [field]
    assert not PriorityClass.objects.exists()


def test_lists_cost_the_same_queries_for_any_tree(
    world: World, member: APIClient, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for n in range(20):
        queue = Queue.objects.create(name=f"q{n}", team=world.team, cohort=world.research)
        give(queue, world.h100, 1)

    with django_assert_max_num_queries(12):  # type: ignore[attr-defined]  # a context manager
        assert len(member.get(f"{API}/queues/").json()["results"]) == 21
