"""Lists, the page of a job and the home: what they say, what they cost, and to whom they say nothing."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from clusters.models import Cluster, GpuSample, Node, ObservedPod, ResourceFlavor
from jobs import transitions
from jobs.models import Job
from portal.core import clock
from portal.identity.models import Team, User
from quotas.models import Quota, QuotaUsage
from tests.factories import make_flavor, make_job
from tests.jobs.scenes import SPEC, Supply, make_placed

BrowserOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db
MOST_QUERIES = 10
QUOTA_NUMBERS = {"queue": "vision", "used": 30, "nominal": 32, "asked": 8, "flavor": "h100"}


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def many(team: Team, alice: User, supply: Supply) -> list[Job]:
    placed = [make_placed(team, alice, supply) for _each in range(3)]
    failed = make_placed(team, alice, supply, state="failed", finished_at=clock.now(), outcome_code="oom")
    waiting = [make_job(team, alice, queue=supply.queue) for _each in range(4)]
    samples = [
        GpuSample(at=clock.now(), cluster_id=supply.cluster.pk, node_id=1, gpu="g", index=0, run=job.uid, rank=0)
        for job in placed
    ]
    GpuSample.objects.bulk_create(samples)
    return [*placed, failed, *waiting]


@pytest.mark.parametrize("address", ["/", "/jobs/", "/services/", "/jobs/{uid}/", "/jobs/{uid}/?tab=ranks"])
def test_a_page_costs_at_most_ten_queries(address: str, alice: User, many: list[Job], browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    address = address.format(uid=many[0].uid)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        text(client, address)

    assert len(queries) <= MOST_QUERIES, "\n".join(query["sql"][:160] for query in queries.captured_queries)


def test_the_list_says_why_and_where(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    make_placed(team, alice, supply)
    numbers = {"free": 8, "asked": 16, "flavor": "h100"}
    make_job(team, alice, queue=supply.queue, name="vit", reason_code="capacity", reason_numbers=numbers)
    html = text(browser_of(alice), "/jobs/")

    assert "sim-east, rack r0" in html
    assert "2 x 8 h100" in html
    assert "16" in html.partition("vit-")[2]
    assert 'data-live="/live/?topic=team%3A' in html


def test_filters_live_in_the_address(alice: User, bob: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    make_job(team, alice, queue=supply.queue, name="mine")
    make_job(team, bob, queue=supply.queue, name="his", labels={"exp": "a"})
    old = make_job(team, alice, queue=supply.queue, name="old", state="failed")
    Job.objects.filter(pk=old.pk).update(created_at=clock.now() - timedelta(days=40))
    client = browser_of(alice)

    def names(query: str) -> set[str]:
        return {row.job.name for row in client.get(f"/jobs/?{query}").context["rows"]}

    assert names("") == {"mine", "his", "old"}
    assert names("mine=1") == {"mine", "old"}
    assert names("state=live") == {"mine", "his"}
    assert names("days=7") == {"mine", "his"}
    assert names("label=exp%3Da") == {"his"}
    assert names("q=hi") == {"his"}
    assert names("team=all&state=failed") == {"old"}


def test_a_flavor_finds_the_jobs_that_ask_for_it_and_those_that_got_it(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf, api_of: Callable[[User], APIClient]
) -> None:
    h100, a100 = ResourceFlavor.objects.get(name="h100"), make_flavor("a100")
    make_placed(team, alice, supply, name="got")
    make_placed(team, alice, supply, name="had", state="succeeded", finished_at=clock.now())
    make_job(team, alice, queue=supply.queue, name="asks", flavor_ids=[a100.pk, h100.pk])
    make_job(team, alice, queue=supply.queue, name="other", flavor_ids=[a100.pk])
    make_job(team, alice, queue=supply.queue, name="any")
    client = browser_of(alice)

    def names(query: str) -> set[str]:
        rows = {row.job.name for row in client.get(f"/jobs/?{query}").context["rows"]}
        found = api_of(alice).get(f"/api/v1/jobs/?{query}").json()["results"]
        assert {job["full_name"].rpartition("-")[0] for job in found} == rows
        return rows

    assert names("flavor=h100") == {"got", "had", "asks"}
    assert names("flavor=a100") == {"asks", "other"}
    assert names("flavor=h100&state=live") == {"got", "asks"}
    assert names("flavor=nonsense") == set()
    html = " ".join(text(client, "/jobs/?flavor=h100&cursor=&days=7").split())
    assert "Flavor: h100" in html
    assert 'href="?days=7&amp;flavor=a100"' in html


@pytest.mark.parametrize("query", ["state=nonsense", "days=x", "cursor=%00", "q=" + "a" * 200, "kind=cron"])
def test_nonsense_in_the_address_is_a_400(query: str, alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    assert browser_of(alice).get(f"/jobs/?{query}").status_code == 400


def test_an_empty_list_tells_how_to_begin_and_a_filtered_one_how_to_clear(
    alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)

    assert "Start a run" in text(client, "/jobs/")
    assert "Clear filters" in text(client, "/jobs/?state=failed")


def test_older_and_newer_lead_through_all_jobs(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    for _each in range(60):
        make_job(team, alice, queue=supply.queue)
    client = browser_of(alice)
    first = client.get("/jobs/").context
    second = client.get("/jobs/" + first["pager"]["older_url"]).context

    assert (len(first["rows"]), len(second["rows"])) == (50, 10)
    assert not {row.job.pk for row in first["rows"]} & {row.job.pk for row in second["rows"]}
    assert first["pager"]["newer_url"] == ""
    assert second["pager"]["newer_url"]


def test_selected_jobs_are_cancelled_each_with_its_own_right(
    alice: User, bob: User, charlie: User, team: Team, other_team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    own, hers, foreign = (
        make_job(team, bob, queue=supply.queue),
        make_job(team, alice, queue=supply.queue),
        make_job(other_team, charlie),
    )
    answer = browser_of(bob).post("/jobs/cancel/", {"job": [own.uid, hers.uid, foreign.uid]}, follow=True)

    states = dict(Job.objects.values_list("uid", "state"))
    assert states == {own.uid: "cancelled", hers.uid: "queued", foreign.uid: "queued"}
    html = answer.content.decode()
    assert "Cancel asked for 1 job." in html
    assert "1 is not yours to change." in html


def test_selected_jobs_get_a_label_and_nonsense_is_refused(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_job(team, alice, queue=supply.queue)
    client = browser_of(alice)
    client.post("/jobs/label/", {"job": [job.uid], "label": "exp=a"})
    refused = client.post("/jobs/label/", {"job": [job.uid], "label": "kubernetes.io/x=a"}, follow=True)

    job.refresh_from_db()
    assert job.labels == {"exp": "a"}
    assert "reserved" in refused.content.decode()


def test_a_waiting_job_says_why_first(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    job = make_job(
        team, alice, queue=supply.queue, reason_code="quota", reason_numbers=QUOTA_NUMBERS, position=2, gpus_ahead=32
    )
    html = text(browser_of(alice), f"/jobs/{job.uid}/")

    assert "30 of 32 h100 GPUs are used" in html
    assert "Position 2 in its queue, 32 GPUs ahead." in html
    assert "Its place in the queue is." in html


def test_a_failed_job_names_rank_code_and_log(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    outcome = {"outcome_code": "oom", "outcome_rank": 1, "exit_code": 137, "outcome_message": "killed at step 4,120"}
    job = make_placed(team, alice, supply, state="failed", finished_at=clock.now(), **outcome)
    html = text(browser_of(alice), f"/jobs/{job.uid}/")

    assert "Out of memory, rank 1, exit code 137" in html
    assert "killed at step 4,120" in html
    assert "?tab=logs" in html
    assert "data-final" in html


def test_stopping_a_run_says_what_is_lost(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    now = clock.now()
    job = make_placed(team, alice, supply, started_at=now - timedelta(hours=3))
    job.attempts.update(started_at=now - timedelta(hours=3))
    client = browser_of(alice)
    assert "48.0 GPU-hours are lost." in text(client, f"/jobs/{job.uid}/")

    ObservedPod.objects.filter(run=job.uid, rank=0).update(checkpoint_at=now - timedelta(minutes=30))
    assert "8.0 GPU-hours are lost." in text(client, f"/jobs/{job.uid}/")


@pytest.mark.parametrize("tab", ["overview", "logs", "charts", "ranks", "events", "yaml"])
def test_every_tab_shows_with_and_without_a_place(
    tab: str, alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)
    waiting = make_job(team, alice, queue=supply.queue, spec={"name": "w", "image": "a", "kind": "training"})
    placed = make_placed(team, alice, supply)

    assert client.get(f"/jobs/{waiting.uid}/?tab={tab}").status_code == 200
    assert client.get(f"/jobs/{placed.uid}/?tab={tab}").status_code == 200
    assert client.get(f"/jobs/{placed.uid}/?tab={tab}", headers={"HX-Request": "true"}).status_code == 200


def test_an_unknown_tab_is_missing(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    job = make_job(team, alice, queue=supply.queue)

    assert browser_of(alice).get(f"/jobs/{job.uid}/?tab=nothing").status_code == 404


def test_a_live_answer_has_the_cells_and_not_the_frame(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_placed(team, alice, supply)
    client = browser_of(alice)
    for address in (f"/jobs/{job.uid}/", "/jobs/", "/"):
        html = client.get(address, headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in html
        assert "data-v=" in html
    html = client.get(f"/jobs/{job.uid}/", headers={"HX-Request": "true"}).content.decode()
    assert 'id="head-state"' in html


def test_an_open_page_hears_of_the_number_that_its_scale_dialog_shows(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_placed(team, alice, supply, kind="inference", workload="deployment")
    client = browser_of(alice)
    whole = text(client, f"/jobs/{job.uid}/")
    assert 'value="2"' in cell_of(whole, "scale-replicas")
    assert "</dialog>" in whole.partition('id="scale-replicas"')[2]

    Job.objects.update(workers=5)
    live = client.get(f"/jobs/{job.uid}/", headers={"HX-Request": "true"}).content.decode()

    assert 'value="5"' in cell_of(live, "scale-replicas")


def cell_of(html: str, name: str) -> str:
    return html.partition(f'<div id="{name}" data-v="')[2].partition("</div>")[0]


def test_a_stale_cluster_marks_what_was_heard_last(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_placed(team, alice, supply)
    Cluster.objects.update(heard_at=clock.now() - timedelta(minutes=2))
    client = browser_of(alice)

    assert "no word from sim-east for" in text(client, f"/jobs/{job.uid}/")
    assert "m-is-stale" in text(client, "/jobs/")


def test_a_foreign_job_is_as_missing_as_none(
    alice: User, charlie: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_job(team, alice, queue=supply.queue)
    client = browser_of(charlie)

    for uid in (job.uid, "000000000000"):
        assert client.get(f"/jobs/{uid}/").status_code == 404
        assert client.get(f"/train/?from={uid}").status_code == 404
        for act in ("cancel", "scale", "again"):
            assert client.post(f"/jobs/{uid}/{act}/").status_code == 404
    assert job.full_name not in text(client, "/jobs/?team=all")


def test_a_viewer_sees_and_changes_nothing(
    alice: User, victor: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    job = make_job(team, alice, queue=supply.queue)
    client = browser_of(victor)
    html = text(client, f"/jobs/{job.uid}/")

    assert "Run again" not in html
    assert 'data-dialog-open="cancel"' not in html
    for act in ("cancel", "scale", "again"):
        assert client.post(f"/jobs/{job.uid}/{act}/").status_code == 403


def test_a_service_is_scaled_in_its_page(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    job = make_job(
        team, alice, queue=supply.queue, kind="inference", workers=3, spec={"replicas": 3, "kind": "inference"}
    )
    client = browser_of(alice)
    client.post(f"/jobs/{job.uid}/scale/", {"replicas": "5"})
    refused = client.post(f"/jobs/{job.uid}/scale/", {"replicas": "-1"}, follow=True)

    job.refresh_from_db()
    assert job.workers == 5
    assert "from 0 to 100" in refused.content.decode()


def test_home_tells_what_is_free_mine_and_needs_me(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    failed = make_placed(team, alice, supply, state="failed", finished_at=clock.now(), outcome_code="oom")
    running = make_placed(team, alice, supply)
    node = Node.objects.get(name="n3")
    node.accelerators.update(held=6)
    html = text(browser_of(alice), "/")

    assert "3 x 8 h100" in html
    assert ">26</bdi>" in html
    assert html.index(failed.full_name) < html.index(running.full_name)
    assert "running 1, queued 0" in html


def test_home_without_a_team_or_a_cluster_still_answers(admin: User, browser_of: BrowserOf) -> None:
    html = text(browser_of(admin), "/")

    assert "No cluster with GPUs is registered yet." in html


def test_the_queue_of_a_run_counts_only_the_type_of_gpu_that_it_holds_or_asks_for_first(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    a100 = make_flavor("a100")
    Quota.objects.create(queue=supply.queue, flavor=a100, nominal=64)
    for flavor, used in ((supply.flavor, 16), (a100, 9)):
        QuotaUsage.objects.create(queue=supply.queue, flavor=flavor, used=used)
    client = browser_of(alice)

    def use_of(job: Job) -> object:
        facts = {fact["id"]: fact for fact in client.get(f"/jobs/{job.uid}/").context["facts"]}
        return facts["queue"]["note"]

    asks = {**SPEC, "accelerators": ["a100", "h100"]}
    assert use_of(make_placed(team, alice, supply, spec=asks)) == "16 of 32 h100 used"
    assert use_of(make_job(team, alice, queue=supply.queue, spec=asks)) == "9 of 64 a100 used"
    assert use_of(make_job(team, alice, queue=supply.queue, spec=SPEC)) == "25 of 96 used, all GPU types"


def test_the_page_of_a_waiting_run_hears_what_cycles_tell_its_team_and_that_of_a_running_one_does_not(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf
) -> None:
    waiting, running = make_job(team, alice, queue=supply.queue), make_placed(team, alice, supply)
    short = make_placed(team, alice, supply, kind="inference", reason_code="quota", reason_numbers=QUOTA_NUMBERS)
    client = browser_of(alice)

    def topics(job: Job) -> list[str]:
        return parse_qs(client.get(f"/jobs/{job.uid}/").context["live_url"].partition("?")[2])["topic"]

    assert topics(waiting) == [f"job:{waiting.uid}", f"team:{team.pk}"]
    assert topics(running) == [f"job:{running.uid}"]
    assert topics(short) == [f"job:{short.uid}", f"team:{team.pk}"]


def test_the_log_of_a_service_speaks_of_replicas_and_that_of_a_run_of_workers(
    alice: User, team: Team, supply: Supply, browser_of: BrowserOf, api_of: Callable[[User], APIClient]
) -> None:
    data = {"cycle": 7, "workers": 3, "cluster": "sim-east", "level": "rack"}

    def told(kind: str) -> list[str]:
        job = make_placed(team, alice, supply, kind=kind)
        for code in ("admitted", "running"):
            transitions.tell(job, transitions.Event(code, data))
        lines = [line["message"] for line in api_of(alice).get(f"/api/v1/jobs/{job.uid}/events/").json()]
        assert all(line in text(browser_of(alice), f"/jobs/{job.uid}/") for line in lines)
        return lines

    assert told("inference") == ["It serves", "Admitted in cycle 7: 3 replicas on sim-east"]
    assert told("training") == ["All workers run", "Admitted in cycle 7: 3 workers on sim-east, within one rack"]
