"""The preview: the same decision as the cycle's, its numbers, the exact objects, and nothing reserved."""

from collections.abc import Callable

import pytest
import yaml
from django.test import Client
from rest_framework.test import APIClient

from clusters.models import NodeAccelerator
from jobs.jobspec.lesson import TEMPLATES
from jobs.models import Allocation, Job
from portal.identity.models import Team, User
from tests.factories import make_job, make_priority_class
from tests.jobs.scenes import Supply

BrowserOf = Callable[[User], Client]
ApiOf = Callable[[User], APIClient]
# A snapshot sets the isolation of its own transaction.
pytestmark = pytest.mark.django_db(transaction=True)
SPEC = {"name": "vit", "image": "team/torch:2.9", "workers": 2, "gpus_per_worker": 8}


def test_a_gang_that_fits_is_told_where_and_what_remains(alice: User, supply: Supply, api_of: ApiOf) -> None:
    said = api_of(alice).post("/api/v1/preview/", SPEC, format="json").json()

    assert (said["outcome"], said["cluster"], said["level"], said["nodes"]) == (
        "starts",
        "sim-east",
        "rack",
        ["n0", "n1"],
    )
    assert said["quota"] == {"queue": "vision", "flavor": "h100", "used": 16, "nominal": 32, "left": 16}
    assert said["reason"] is None
    assert not Allocation.objects.exists()
    assert not Job.objects.exists()


def test_one_that_waits_is_told_why_and_behind_whom(alice: User, team: Team, supply: Supply, api_of: ApiOf) -> None:
    NodeAccelerator.objects.update(held=8)
    first = make_job(team, alice, queue=supply.queue, priority_class=make_priority_class("research"), gpus_per_worker=8)
    said = api_of(alice).post("/api/v1/preview/", SPEC, format="json").json()

    assert (said["outcome"], said["reason"]["code"]) == ("waits", "capacity")
    assert (said["position"], said["gpus_ahead"], said["ahead"]) == (2, 8, [first.full_name])


def test_one_that_can_never_start_is_told_the_limit(alice: User, supply: Supply, api_of: ApiOf) -> None:
    said = api_of(alice).post("/api/v1/preview/", {**SPEC, "workers": 5}, format="json").json()

    assert (said["outcome"], said["reason"]["code"]) == ("never", "never_fits")
    assert said["reason"]["numbers"]["most"] == 32


def test_the_panel_answers_while_typing_and_names_what_is_not_valid(
    alice: User, supply: Supply, browser_of: BrowserOf
) -> None:
    client = browser_of(alice)
    fine = client.post("/train/preview/", {"source": "yaml", "yaml": yaml.safe_dump(SPEC)})
    wrong = client.post("/train/preview/", {"source": "yaml", "yaml": "name: A\nimage: b\n"})

    assert "Would start now in sim-east" in fine.content.decode()
    assert "Not a reservation." in fine.content.decode()
    assert wrong.status_code == 422
    assert "line 1: name:" in " ".join(wrong.content.decode().split())


def test_the_exact_objects_can_be_kept(alice: User, supply: Supply, browser_of: BrowserOf) -> None:
    answer = browser_of(alice).post("/train/manifest/", {"source": "yaml", "yaml": yaml.safe_dump(SPEC)})
    job, service = yaml.safe_load_all(answer.content)

    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert (job["kind"], service["kind"]) == ("Job", "Service")
    assert job["spec"]["completions"] == 2
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"


def test_templates_are_documents_that_can_be_sent_back(alice: User, supply: Supply, api_of: ApiOf) -> None:
    client = api_of(alice)
    templates = client.get("/api/v1/templates/").json()

    assert [each["name"] for each in templates] == [template.name for template in TEMPLATES]
    for template in templates:
        assert client.post("/api/v1/preview/", template["document"], format="json").status_code in (200, 422)
    assert client.get("/api/v1/templates/nothing/").status_code == 404
