"""Rules that need rows: each names its field and its limit, and nothing is stored."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.db import transaction

from clusters.models import PersistentClaim
from jobs.jobspec.fields import JobSpec
from jobs.models import Job
from jobs.services import intake, submit
from portal.core.audit import SYSTEM
from portal.core.errors import DomainError, InvalidInputError
from portal.identity.models import TeamSecret
from tests.factories import make_flavor, make_priority_class, make_queue, make_team
from tests.jobs.fleet import Fleet, make_fleet
from tests.jobs.test_holding import at_once

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT: Mapping[str, Any] = {
    "name": "train",
    "kind": "training",
    "image": "example.org/train:1",
    "gpus_per_worker": 8,
}


@pytest.fixture
def fleet() -> Fleet:
    make_priority_class(is_default=True)
    return make_fleet(nodes=2)


def spec_of(fleet: Fleet, **fields: Any) -> JobSpec:
    return intake.read_document({**DOCUMENT, **fields}, team=fleet.team)


def submitted(fleet: Fleet, **fields: Any) -> Job:
    request = submit.resolve(spec_of(fleet, **fields), team=fleet.team)
    return submit.submit_job(actor=SYSTEM, owner=fleet.owner, request=request)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"queue": "another"}, "queue", "Unknown queue"),
        ({"accelerators": ["h100", "b900"]}, "accelerators[1]", "Unknown accelerator. Known are: h100"),
        ({"clusters": ["moon"]}, "clusters[0]", "Unknown cluster"),
        ({"gpus_per_worker": 9}, "gpus_per_worker", "9 GPUs per worker; h100 nodes offer at most 8"),
        ({"image_pull_secret": "key"}, "image_pull_secret", "has not listed the secret key"),
        ({"secrets": [{"name": "listed", "key": "b", "env": "B"}]}, "secrets[0].key", "This secret has the keys: a"),
        ({"workers": 2, "volumes": [{"claim": "one-node", "mount_path": "/data"}]}, "volumes[0].claim", "one node"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_by_its_field(
    fleet: Fleet, fields: dict[str, Any], field: str, words: str
) -> None:
    TeamSecret.objects.create(team=fleet.team, name="listed", keys=["a"])
    PersistentClaim.objects.create(
        cluster=fleet.cluster, namespace=fleet.team.namespace, name="one-node", access_modes=["ReadWriteOnce"]
    )

    with pytest.raises(InvalidInputError) as refused:
        submitted(fleet, **fields)

    assert words in " ".join(refused.value.problems[field])
    assert not Job.objects.exists()


def test_a_flavor_without_quota_is_refused(fleet: Fleet) -> None:
    make_flavor("a100")

    with pytest.raises(InvalidInputError) as refused:
        submitted(fleet, accelerators=["a100"])

    assert "no quota for a100" in refused.value.problems["accelerators"][0]


def test_a_queue_of_another_team_does_not_exist(fleet: Fleet) -> None:
    theirs = make_queue(make_team())

    with pytest.raises(InvalidInputError) as refused:
        submitted(fleet, queue=theirs.name)

    assert "Unknown queue" in refused.value.problems["queue"][0]


@pytest.mark.parametrize(("priority", "code"), [("nothing", "unknown_priority"), ("critical", "priority_not_allowed")])
def test_a_priority_must_exist_and_be_allowed(fleet: Fleet, priority: str, code: str) -> None:
    make_priority_class("critical", 1_000_000, is_open=False)

    with pytest.raises(DomainError) as refused:
        submitted(fleet, priority=priority)

    assert refused.value.code == code


def test_what_a_request_leaves_open_is_filled_in_and_stored(fleet: Fleet) -> None:
    job = submitted(fleet, cpu={"request": "1500m"}, memory={"request": "1.5Gi"})

    assert (job.queue, job.priority_class.name, job.full_name) == (fleet.queue, "normal", "train-1")
    assert (job.cpu_milli, job.memory_mib, job.gpus) == (1_500, 1_536, 8)
    assert (job.spec["queue"], job.spec["priority"]) == (fleet.queue.name, "normal")
    assert job.events.get().code == "queued"


def test_runs_of_one_name_submitted_at_once_get_a_number_each(fleet: Fleet) -> None:
    results = at_once(10, lambda _number: submitted(fleet).number)

    assert sorted(results, key=str) == sorted(range(1, 11), key=str)


def test_of_a_batch_with_one_refusal_none_is_queued(fleet: Fleet) -> None:
    bodies: list[object] = [{}, {}, {"queue": "another"}]

    with pytest.raises(InvalidInputError), transaction.atomic():
        submit.all_or_none(lambda body: submitted(fleet, **body), bodies)  # type: ignore[arg-type]

    assert not Job.objects.exists()
