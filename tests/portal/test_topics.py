"""Who may hear what of the live stream: a topic that is nobody's is as missing as a foreign one."""

from collections.abc import Callable

import pytest
from django.test import Client

from jobs.models import Job
from portal.identity.models import Team, User
from portal.live.topics import MOST, allowed_topics
from tests.factories import make_cluster, make_job

BrowserOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db
KINDS = ("job", "team", "cluster", "telemetry", "queues", "clusters", "no-such-kind", "")
KEYS = ("", "\x00", "a\x00b", " ", "%", "'", "ä", "٣", "²", "-1", "1.0", "1e3", "9" * 18, "9" * 5000, "a" * 5000, "x:1")


@pytest.fixture
def job(team: Team, alice: User) -> Job:
    return make_job(team, alice)


@pytest.mark.parametrize("key", KEYS, ids=ascii)
@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_that_names_nothing_is_missing(alice: User, browser_of: BrowserOf, kind: str, key: str) -> None:
    said = browser_of(alice).get("/live/", {"topic": f"{kind}:{key}"})

    assert said.status_code == 404


def test_a_person_hears_of_the_own_jobs_and_teams_and_of_all_clusters(job: Job, alice: User, charlie: User) -> None:
    cluster = make_cluster()
    shared = frozenset({"queues", "clusters", f"cluster:{cluster.pk}", f"telemetry:{cluster.pk}"})
    own = frozenset({f"job:{job.uid}", f"team:{job.team_id}"})

    assert allowed_topics(alice, shared | own) == shared | own
    assert allowed_topics(charlie, shared) == shared
    assert [allowed_topics(charlie, shared | {topic}) for topic in own] == [None, None]


def test_one_stream_has_a_bounded_number_of_topics(alice: User) -> None:
    clusters = [f"cluster:{make_cluster().pk}" for _each in range(MOST + 1)]

    assert allowed_topics(alice, clusters[:MOST]) is not None
    assert allowed_topics(alice, clusters) is None
    assert allowed_topics(alice, []) is None
