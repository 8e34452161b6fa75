"""Train and Serve: from a template to a queued run, nothing typed is lost, one run a click."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from portal.identity.models import User
from tests.jobs.scenes import Supply

BrowserOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db


def fields_of(client: Client, address: str = "/train/") -> dict[str, Any]:
    """Return what a browser would send for the form as it stands."""
    answer = client.get(address)
    form, context = answer.context["form"], answer.context
    values: dict[str, Any] = {"base": form.base_text, "token": context["token"], "source": "form"}
    for bound in form:
        if hasattr(bound, "rows"):
            values |= {cell.name: cell.value for cells in bound.rows for cell in cells if cell.value}
        else:
            values[bound.html_name] = bound.value() or ""
    return values


def test_the_first_template_becomes_the_lessons_job(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    answer = client.post("/train/", fields_of(client))

    job = Job.objects.get()
    assert answer.headers["Location"] == f"/jobs/{job.uid}/"
    assert job.spec["args"] == ["--epochs=100", "--batch-size=64"]
    assert job.spec["memory"] == {"request": "16Gi", "limit": "32Gi"}
    assert [volume["claim"] for volume in job.spec["volumes"]] == ["training-data", "model-checkpoints"]
    assert (job.gpus, job.state, job.owner) == (2, "queued", alice)


def test_the_model_server_becomes_a_service(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    client.post("/serve/", fields_of(client, "/serve/"))

    job = Job.objects.get()
    assert (job.kind, job.workers, job.spec["port"], job.spec["service_port"]) == ("inference", 3, 8080, 80)
    assert job.spec["readiness"] == {"path": "/health", "port": 8080, "delay_s": 30, "period_s": 10}


def test_a_page_sent_twice_makes_one_run(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    sent = fields_of(client)
    first, second = client.post("/train/", sent), client.post("/train/", sent)

    assert Job.objects.count() == 1
    assert first.headers["Location"] == second.headers["Location"]


def test_a_mistake_stands_beside_its_field_and_nothing_typed_is_lost(
    alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)
    sent = fields_of(client) | {"name": "Vit_Ablate", "gpus_per_worker": "64", "description": "kept <b>"}
    answer = client.post("/train/", sent)

    html = answer.content.decode()
    assert answer.status_code == 422
    assert not Job.objects.exists()
    assert {"name", "gpus_per_worker"} <= set(answer.context["form"].errors)
    assert 'href="#id_name"' in html
    assert "Vit_Ablate" in html
    assert "kept &lt;b&gt;" in html


def test_a_rule_that_needs_rows_names_field_and_limit(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    answer = client.post("/train/", fields_of(client) | {"gpus_per_worker": "16"})

    assert answer.context["form"].errors["gpus_per_worker"] == ["16 GPUs per worker; h100 nodes offer at most 8."]


def test_a_wrong_row_of_a_list_is_named(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    answer = client.post("/train/", fields_of(client) | {"volumes-1-mount_path": "no/path"})

    (message,) = answer.context["form"].errors["volumes"]
    assert message.startswith("row 2, mount_path: “no/path”")


@pytest.mark.parametrize("text", ["\0", "1\0", "\0 1", "٣", "²", "\uff11", "1e3", "0x1"], ids=ascii)
def test_what_is_no_value_of_an_input_is_its_error_and_never_counts_as_empty(
    alice: User, supply: Supply, browser_of: BrowserOf, text: str
) -> None:
    client = browser_of(alice)
    for address in ("/train/", "/serve/"):
        sent = fields_of(client, address)
        numbers = {"workers", "replicas", "gpus_per_worker", "max_runtime", "port", "readiness_delay"}
        for field in sorted(numbers & set(sent)):
            page = client.post(address, sent | {field: text})
            assert page.status_code == 422, field
            assert field in page.context["form"].errors
            assert client.post("/train/preview/", sent | {field: text}).status_code == 422
    assert not Job.objects.exists()


def test_no_input_of_the_form_takes_a_nul_for_nothing(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    for address in ("/train/", "/serve/"):
        sent = fields_of(client, address)
        inputs = [bound.html_name for bound in client.get(address).context["form"] if not hasattr(bound, "rows")]
        cells = [name for name in sent if "-" in name and not name.endswith("read_only")]
        for name in inputs + cells:
            page = client.post("/train/preview/", sent | {name: "a\0b"})
            assert page.status_code == 422, name
    assert not Job.objects.exists()


@pytest.mark.parametrize("named", ["speech", "moon", "1", "{x: 1}", "true"])
def test_yaml_for_another_team_than_the_pages_is_not_started(
    alice: User, charlie: User, supply: Supply, browser_of: BrowserOf, named: str
) -> None:
    client = browser_of(alice)
    text = f"name: vit\nimage: team/torch:2.9\nteam: {named}\n"
    for address in ("/train/", "/train/preview/", "/train/manifest/", "/train/convert/"):
        page = client.post(address, {"source": "yaml", "yaml": text, "to": "form"})
        assert page.status_code == 422, address
        assert "line 3: team: The YAML names the team" in " ".join(page.content.decode().split())
    assert not Job.objects.exists()


def test_form_to_yaml_and_back_keeps_everything(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    text = (
        "name: vit\nimage: team/torch:2.9\ntolerations:\n- {key: spot, operator: Exists}\n"
        'args: ["a\\nb", "", "c"]\nttl_s: null\nmax_runtime_s: 45000\n'
    )
    pane = client.post("/train/convert/", {"source": "yaml", "yaml": text, "to": "form"})
    form = pane.context["form"]

    assert pane.status_code == 200
    assert form["max_runtime"].value() == "12h 30m"
    assert form["ttl"].value() == "never"
    sent = {"base": form.base_text, "source": "form", "to": "yaml"}
    for bound in form:
        if hasattr(bound, "rows"):
            sent |= {cell.name: cell.value for cells in bound.rows for cell in cells}
        else:
            sent[bound.html_name] = bound.value() or ""
    back = client.post("/train/convert/", sent).content.decode()
    assert "key: spot" in back
    assert "ttl_s: null" in back
    assert "max_runtime_s: 45000" in back
    assert "a\n  b" in back or "a\\nb" in back


def test_yaml_that_cannot_be_read_names_the_line(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    broken = client.post("/train/convert/", {"source": "yaml", "yaml": "name: a\nimage: [", "to": "form"})
    wrong = client.post("/train/", {"source": "yaml", "yaml": "name: a\nimage: b\nworkers: lots\n"})

    assert broken.status_code == 422
    assert "line 3" in broken.content.decode()
    assert wrong.status_code == 422
    assert "line 3: workers: This must be a whole number, not a text." in re.sub(r"\s+", " ", wrong.content.decode())
    assert "workers: lots" in wrong.content.decode()


def test_the_lessons_yaml_starts_as_it_is(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    client = browser_of(alice)
    with open("docs/examples/training_job.yaml") as file:  # noqa: PTH123
        answer = client.post("/train/", {"source": "yaml", "yaml": file.read(), "token": "t"})

    assert answer.status_code == 302
    assert Job.objects.get().name == "pytorch-training"


def test_a_run_again_keeps_its_parent_and_the_page_shows_the_difference(
    alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)
    client.post("/train/", fields_of(client))
    first = Job.objects.get()
    sent = fields_of(client, f"/train/?from={first.uid}") | {"args-0-value": "--epochs=7"}
    client.post("/train/", sent)

    second = Job.objects.get(parent=first)
    assert second.full_name == "pytorch-training-2"
    html = client.get(f"/jobs/{second.uid}/").content.decode()
    assert "args[0]" in html
    assert "--epochs=7" in html


def test_a_viewer_and_a_stranger_start_nothing(
    victor: User, charlie: User, alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    sent = fields_of(browser_of(alice)) | {"team": "vision"}

    assert browser_of(victor).post("/train/", sent).status_code == 403
    assert browser_of(charlie).post("/train/", sent).status_code == 404
    assert not Job.objects.exists()
