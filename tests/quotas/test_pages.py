"""The queues page, one queue, and the policy console, as a browser without JavaScript and as htmx asks for them."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from portal.identity.models import Organization, User
from quotas.models import Cohort, PriorityClass, Queue, Quota
from quotas.services.usage import reserve
from tests.factories import make_cohort, make_flavor, make_membership, make_priority_class, make_team, make_user
from tests.quotas.conftest import World, give, queue_beside
from tests.quotas.test_policy import REFUSED

pytestmark = pytest.mark.django_db
CONSOLE = "/console/policy/"


@pytest.fixture
def member(world: World, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(make_membership(make_user("mia"), world.team).user)


@pytest.fixture
def administrator(world: World, admin: User, browser_of: Callable[[User], Client]) -> Client:
    return browser_of(admin)


@pytest.fixture
def stranger(world: World, browser_of: Callable[[User], Client]) -> Client:
    """Owns a team with a queue in another organization."""
    other = Organization.objects.create(name="Other", slug="other")
    team = make_team("foreign", organization=other)
    Queue.objects.create(name="foreign", team=team, cohort=Cohort.objects.create(name="other", organization=other))
    return browser_of(make_membership(make_user("sam"), team, "owner").user)


def cell_url(world: World) -> str:
    return reverse("quotas:quota", args=["queue", world.vision.pk, world.h100.pk])


def text_of(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


# --- who holds what ------------------------------------------------------------------------------
def test_everybody_in_the_organization_sees_all_queues_and_which_is_their_own(world: World, member: Client) -> None:
    give(world.vision, world.h100, 8)
    give(queue_beside(world, "speech"), world.h100, 4)
    reserve(world.vision.pk, world.h100.pk, 5)

    page = text_of(member, "/queues/")

    assert "speech" in page
    assert "5 of 8" in page
    assert page.count("yours") == 1
    assert "Edit the policy" not in page


def test_another_organizations_tree_is_not_there(world: World, stranger: Client) -> None:
    page = text_of(stranger, "/queues/")

    assert "foreign" in page
    assert "research" not in page
    assert stranger.get(f"/queues/{world.vision.pk}/").status_code == 404
    assert stranger.get("/queues/999999/").status_code == 404


def test_a_person_without_a_team_reads_why_the_page_is_empty(world: World, browser_of: Callable[..., Client]) -> None:
    assert "You are in no team yet" in text_of(browser_of(make_user()), "/queues/")


def test_a_visitor_is_asked_to_sign_in(world: World) -> None:
    for url in ("/queues/", f"/queues/{world.vision.pk}/", CONSOLE, cell_url(world)):
        assert Client().get(url).headers["Location"].startswith("/sign-in/")


def test_the_flavor_is_chosen_in_the_address(world: World, member: Client) -> None:
    give(world.vision, make_flavor("a100"), 3)
    give(world.vision, world.h100, 8)

    assert "0 of 3" in text_of(member, "/queues/?flavor=a100")
    assert "0 of 8" in text_of(member, "/queues/?flavor=h100")
    assert "0 of 3" in text_of(member, "/queues/?flavor=%00nonsense")  # an unknown one shows the first


def test_a_quota_cut_below_its_use_shows_all_that_is_in_use(world: World, member: Client) -> None:
    quota = give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 8)
    Quota.objects.filter(pk=quota.pk).update(nominal=5)

    page = text_of(member, "/queues/")

    assert "8 of 5" in page
    assert "3 above the quota" in page


def test_one_queue_shows_its_path_its_quota_and_its_priorities(world: World, member: Client) -> None:
    give(world.vision, world.h100, 8)
    make_priority_class("standard", is_default=True)
    Queue.objects.filter(pk=world.vision.pk).update(is_paused=True)

    page = text_of(member, f"/queues/{world.vision.pk}/")

    assert page.index("acme") < page.index("research")
    assert "0 of 8" in page
    assert "standard" in page
    assert "starts none" in page


@pytest.mark.parametrize("many", [1, 30])
def test_the_queues_page_costs_the_same_queries_for_any_tree(
    world: World, member: Client, many: int, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for n in range(many):
        give(queue_beside(world, f"q{n}"), world.h100, 1)

    with django_assert_max_num_queries(12):  # type: ignore[attr-defined]  # a context manager
        text_of(member, "/queues/")


# --- the console ---------------------------------------------------------------------------------
def test_only_administrators_get_into_the_console(world: World, member: Client) -> None:
    posts = [
        cell_url(world),
        f"{CONSOLE}cohorts/",
        f"{CONSOLE}queues/",
        f"{CONSOLE}queue/{world.vision.pk}/rename/",
        f"{CONSOLE}queue/{world.vision.pk}/remove/",
        f"{CONSOLE}queues/{world.vision.pk}/pause/",
        f"{CONSOLE}queues/{world.vision.pk}/default/",
        f"{CONSOLE}priorities/",
        f"{CONSOLE}priorities/1/",
        f"{CONSOLE}priorities/1/teams/",
        f"{CONSOLE}priorities/1/remove/",
    ]

    assert member.get(CONSOLE).status_code == 403
    assert {url: member.post(url, {"version": 1}).status_code for url in posts} == dict.fromkeys(posts, 403)


def test_a_cell_opens_and_is_saved_without_javascript(world: World, administrator: Client) -> None:
    opened = text_of(administrator, cell_url(world))
    assert 'name="nominal"' in opened
    assert 'name="version" value="0"' in opened

    answer = administrator.post(cell_url(world), {"nominal": "8", "version": "0"}, follow=True)

    assert answer.redirect_chain == [(CONSOLE, 302)]
    assert Quota.objects.get(queue=world.vision).nominal == 8


def test_htmx_gets_the_tree_alone(world: World, administrator: Client) -> None:
    opened = administrator.get(cell_url(world), headers={"HX-Request": "true"}).content.decode()
    saved = administrator.post(
        cell_url(world), {"nominal": "8", "version": "0"}, headers={"HX-Request": "true"}
    ).content.decode()

    for part in (opened, saved):
        assert 'id="policy-tree"' in part
        assert "<html" not in part
    assert 'name="nominal"' in opened
    assert 'name="nominal"' not in saved
    assert "<bdi>8</bdi>" in saved
    assert saved.count(" autofocus") == 1  # the keyboard stays where it was


def test_children_above_their_parent_are_refused_beside_the_cell_with_both_numbers(
    world: World, administrator: Client
) -> None:
    give(world.research, world.h100, 10)

    answer = administrator.post(cell_url(world), {"nominal": "11", "version": "0"})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "would hold 11 h100 GPUs, but research has 10" in page
    assert 'value="11"' in page  # nothing typed is lost
    assert not Quota.objects.filter(queue=world.vision).exists()


@pytest.mark.parametrize("text", [*REFUSED, "8" * 61, "x" * 1_000])
def test_a_refused_amount_is_an_answer_and_never_a_crash(world: World, administrator: Client, text: str) -> None:
    quota = give(world.vision, world.h100, 5)

    answer = administrator.post(cell_url(world), {"nominal": text, "version": "1"})

    assert answer.status_code in (422, 302)
    quota.refresh_from_db()
    # Blanks around a number are no mistake in a form; REST takes them for one.
    assert quota.nominal == (8 if text.strip() == "8" else 5)


@pytest.mark.parametrize("version", ["", "x", "-1", "1e9", "99999999999999999999"])
def test_a_damaged_version_is_refused(world: World, administrator: Client, version: str) -> None:
    give(world.vision, world.h100, 5)

    assert administrator.post(cell_url(world), {"nominal": "8", "version": version}).status_code == 422
    assert Quota.objects.get().nominal == 5


def test_a_stale_edit_shows_both_versions_and_lets_the_person_choose(world: World, administrator: Client) -> None:
    quota = give(world.vision, world.h100, 5)
    Quota.objects.filter(pk=quota.pk).update(nominal=6, version=2)

    answer = administrator.post(cell_url(world), {"nominal": "8", "version": "1"})

    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Use mine: 8" in page
    assert "Keep theirs: 6" in page
    assert 'name="version" value="2"' in page
    administrator.post(cell_url(world), {"nominal": "8", "version": "2"})
    assert Quota.objects.get().nominal == 8


def test_a_quota_is_taken_away_by_its_button(world: World, administrator: Client) -> None:
    give(world.vision, world.h100, 5)

    administrator.post(cell_url(world), {"nominal": "", "version": "1", "remove": "1"})

    assert not Quota.objects.exists()


def test_a_cut_below_use_warns_on_the_page(world: World, administrator: Client) -> None:
    give(world.vision, world.h100, 8)
    reserve(world.vision.pk, world.h100.pk, 8)

    answer = administrator.post(cell_url(world), {"nominal": "5", "version": "1"}, follow=True)

    assert "3 above its 5: nothing new starts" in answer.content.decode()


def test_cohort_and_queue_are_added_from_the_page(world: World, administrator: Client) -> None:
    team = make_team("speech")
    cohort = {"name": "prod", "organization": "acme", "parent": world.root.pk}
    assert administrator.post(f"{CONSOLE}cohorts/", cohort).status_code == 302
    queue = {"name": "speech", "team": "speech", "cohort": Cohort.objects.get(name="prod").pk}
    assert administrator.post(f"{CONSOLE}queues/", queue).status_code == 302

    assert Queue.objects.get(team=team).cohort.parent == world.root


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("cohorts/", {"name": "research", "organization": "acme"}),
        ("cohorts/", {"name": "", "organization": "acme"}),
        ("cohorts/", {"name": "x", "organization": "nobody", "parent": "x"}),
        ("cohorts/", {"name": "x\x00", "organization": "acme"}),
        ("queues/", {"name": "x", "team": "nobody", "cohort": "99999999999999999999"}),
        ("queues/", {"name": "vision", "team": "vision", "cohort": ""}),
        ("priorities/", {"name": "system-node-critical", "value": "5"}),
        ("priorities/", {"name": "urgent", "value": "1000000001"}),
        ("priorities/", {"name": "urgent", "value": "1e30"}),
    ],
)
def test_a_bad_addition_is_shown_again_with_what_is_wrong(
    world: World, administrator: Client, path: str, data: dict[str, str]
) -> None:
    answer = administrator.post(CONSOLE + path, data)

    assert answer.status_code == 422
    assert "m-error" in answer.content.decode()
    assert (Cohort.objects.count(), Queue.objects.count(), PriorityClass.objects.count()) == (2, 1, 0)


def test_a_queue_is_renamed_paused_and_removed_by_its_buttons(world: World, administrator: Client) -> None:
    base = f"{CONSOLE}queue/{world.vision.pk}"
    administrator.post(f"{base}/rename/", {"name": "sight", "version": 1})
    administrator.post(f"{CONSOLE}queues/{world.vision.pk}/pause/", {"paused": 1, "version": 2})
    assert Queue.objects.values_list("name", "is_paused").get() == ("sight", True)

    stale = administrator.post(f"{base}/remove/", {"version": 1}, follow=True)
    assert "Somebody else changed sight" in stale.content.decode()
    administrator.post(f"{base}/remove/", {"version": 3})
    assert not Queue.objects.exists()


@pytest.mark.parametrize("path", ["team/1/rename/", "queue/999999/rename/", "cohort/999999/remove/", "queues/9/pause/"])
def test_acts_on_what_is_not_there_are_404(administrator: Client, path: str) -> None:
    assert administrator.post(CONSOLE + path, {"version": 1, "name": "x"}).status_code == 404


def test_the_ladder_is_edited_on_a_page_of_its_own(world: World, administrator: Client) -> None:
    rung = make_priority_class("production", 100_000, is_open=False)
    page = f"{CONSOLE}priorities/{rung.pk}/"
    assert 'value="production"' in text_of(administrator, page)
    values = {"name": "production", "value": "200000", "description": "", "version": "1"}

    assert administrator.post(page, values).status_code == 302
    stale = administrator.post(page, {**values, "value": "300000"})

    assert PriorityClass.objects.get().value == 200_000
    assert stale.status_code == 409
    assert "Keep theirs: production, 200000" in stale.content.decode()
    administrator.post(f"{page}teams/", {"teams": ["vision"], "version": 2})
    assert "Vision" in text_of(administrator, CONSOLE)
    administrator.post(f"{page}remove/", {"version": 3})
    assert not PriorityClass.objects.exists()


def test_a_box_to_tick_is_not_called_optional(world: World, administrator: Client) -> None:
    rung = make_priority_class("production", 100_000)
    html = text_of(administrator, f"{CONSOLE}priorities/{rung.pk}/")
    label = html.partition("Every team may use it")[2].partition("</label>")

    assert label[1]
    assert "optional" not in label[0]


def test_an_empty_console_says_where_to_start(admin: User, browser_of: Callable[[User], Client]) -> None:
    Organization.objects.create(name="New", slug="new")

    page = text_of(browser_of(admin), CONSOLE)

    assert "Start with a root cohort" in page
    assert "ladder of priorities belongs here" in page


def test_the_console_costs_the_same_queries_for_any_tree(
    world: World, administrator: Client, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for n in range(20):
        give(queue_beside(world, f"q{n}"), make_flavor(f"f{n}"), 1)
        make_cohort(f"c{n}", parent=world.root)

    with django_assert_max_num_queries(20):  # type: ignore[attr-defined]  # a context manager
        text_of(administrator, CONSOLE)
