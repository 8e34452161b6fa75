"""What the documentation tells people to send is taken as it stands there."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from portal.identity.models import User
from tests.jobs.scenes import Supply

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[2] / "docs"
BODY = re.compile(r"-d '([^']*)'")


def test_the_three_calls_of_the_guide_submit_read_and_scale(
    alice: User, supply: Supply, api_of: Callable[[User], APIClient]
) -> None:
    api = api_of(alice)
    service, replicas = (json.loads(body) for body in BODY.findall((DOCS / "user.md").read_text(encoding="utf-8")))
    made = api.post("/api/v1/jobs/", service, format="json")
    assert made.status_code == 201, made.content
    address = f"/api/v1/jobs/{made.json()['id']}/"

    assert api.get(address).json()["state"] == "queued"
    assert api.post(f"{address}scale/", replicas, format="json").json()["workers"] == replicas["replicas"]


@pytest.mark.parametrize("name", ["training_job", "inference"])
def test_an_example_file_is_taken_for_a_team_by_its_address_alone(
    alice: User, supply: Supply, api_of: Callable[[User], APIClient], name: str
) -> None:
    text = (DOCS / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
    said = api_of(alice).generic("POST", "/api/v1/jobs/?team=vision", text, content_type="application/yaml")

    assert said.status_code == 201, said.content
