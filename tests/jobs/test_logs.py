"""Logs: the right pod is asked, bytes become lines, and nobody reads what is not theirs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from django.test import Client

from clusters.k8s.connection import Connection
from clusters.models import Cluster
from jobs.models import Job
from portal.identity.models import Team, User
from portal.live import logs
from portal.live.logs import LogTarget, follow_log
from tests.factories import make_job
from tests.jobs.scenes import Supply, make_placed

BrowserOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db


class Kubelet(BaseHTTPRequestHandler):
    """Answers for logs as an API server does."""

    protocol_version = "HTTP/1.0"
    body: ClassVar[bytes] = b""
    status: ClassVar[int] = 200
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        Kubelet.asked.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def kubelet() -> Iterator[str]:
    Kubelet.body, Kubelet.status = b"", 200
    Kubelet.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def job(alice: User, team: Team, supply: Supply, kubelet: str) -> Job:
    supply.cluster.server, supply.cluster.token = kubelet, "cluster-token"
    supply.cluster.save()
    return make_placed(team, alice, supply)


def test_the_pod_of_the_rank_is_asked_for_its_last_lines(alice: User, job: Job, browser_of: BrowserOf) -> None:
    Kubelet.body = b"step 1\nstep 2\n"
    answer = browser_of(alice).get(f"/api/v1/jobs/{job.uid}/logs/?rank=1&tail=2")

    assert answer.content == b"step 1\nstep 2\n"
    ((path, authorization),) = Kubelet.asked
    assert path.startswith(f"/api/v1/namespaces/vision/pods/m-{job.uid}-a1-1-abcde/log?")
    assert "container=main" in path
    assert "tailLines=2" in path
    assert authorization == "Bearer cluster-token"


def test_bytes_that_are_no_text_become_text_and_no_more_than_that(alice: User, job: Job, browser_of: BrowserOf) -> None:
    Kubelet.body = "épo\x00que 1/9\répoque 9/9\n".encode() + b"bad \xff byte\n" + "last line 漢".encode()
    text = browser_of(alice).get(f"/api/v1/jobs/{job.uid}/logs/").content.decode()

    assert text.splitlines() == ["époque 1/9", "époque 9/9", "bad � byte", "last line 漢"]


@pytest.mark.parametrize(("status", "code", "answer"), [(404, "log_gone", 404), (400, "log_not_ready", 409)])
def test_a_log_that_is_not_there_says_why(
    status: int, code: str, answer: int, alice: User, job: Job, browser_of: BrowserOf
) -> None:
    Kubelet.status = status
    said = browser_of(alice).get(f"/api/v1/jobs/{job.uid}/logs/")

    assert (said.status_code, said.json()["code"]) == (answer, code)


def test_a_silent_cluster_is_a_503_and_not_an_error(alice: User, job: Job, browser_of: BrowserOf) -> None:
    Cluster.objects.update(server="http://127.0.0.1:1")
    said = browser_of(alice).get(f"/api/v1/jobs/{job.uid}/logs/")

    assert (said.status_code, said.json()["code"]) == (503, "log_unavailable")


@pytest.mark.parametrize(
    "query", ["rank=9", "rank=-1", "rank=x", "rank=", "tail=99999999", "tail=%00", "tail=%D9%A3", "tail=1.0"]
)
def test_nonsense_is_refused_with_its_field(query: str, alice: User, job: Job, browser_of: BrowserOf) -> None:
    said = browser_of(alice).get(f"/api/v1/jobs/{job.uid}/logs/?{query}")

    assert said.status_code == 400
    assert said.json()["errors"][0]["field"] == query.partition("=")[0]
    assert not Kubelet.asked


def test_a_job_without_a_place_has_no_log_yet(alice: User, team: Team, supply: Supply, browser_of: BrowserOf) -> None:
    waiting = make_job(team, alice, queue=supply.queue)

    assert browser_of(alice).get(f"/api/v1/jobs/{waiting.uid}/logs/").json()["code"] == "log_not_ready"


def test_a_stranger_never_reaches_the_cluster(charlie: User, job: Job, browser_of: BrowserOf) -> None:
    assert browser_of(charlie).get(f"/api/v1/jobs/{job.uid}/logs/").status_code == 404
    assert not Kubelet.asked


def followed(url: str, *, may_read: bool = True) -> bytes:
    target = LogTarget(Connection(url), "vision", "pod", "main")

    async def may() -> bool:
        return may_read

    async def read() -> bytes:
        return b"".join([chunk async for chunk in follow_log(target, 10, may_read=may)])

    return asyncio.run(read())


def test_a_followed_log_ends_with_its_container(kubelet: str) -> None:
    Kubelet.body = b"one\ntwo\nthree"

    assert followed(kubelet) == b"one\ntwo\nthree\n"
    assert "follow=true" in Kubelet.asked[0][0]


def test_a_followed_log_ends_when_its_reader_may_not_see_it_any_more(
    kubelet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "RECHECK_S", -1.0)
    Kubelet.body = b"one\n" * 100_000

    assert len(followed(kubelet, may_read=False)) < len(Kubelet.body)
    assert len(followed(kubelet, may_read=True)) == len(Kubelet.body)


def test_a_followed_log_is_bounded(kubelet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 1_000)
    Kubelet.body = b"x" * 100 + b"\n"
    Kubelet.body *= 100_000
    text = followed(kubelet)

    assert len(text) < len(Kubelet.body)
    assert text.endswith(b"[muster] It goes on; open it again to read further.\n")


def test_a_program_that_says_nothing_does_not_hide_that_its_reader_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SILENCE_S", 0.01)

    async def silent() -> AsyncIterator[bytes]:
        await asyncio.sleep(0.1)
        yield b"late\n"

    async def read() -> list[bytes]:
        return [chunk async for chunk in logs._with_silence(silent())]

    chunks = asyncio.run(read())
    assert chunks[0] == b""
    assert chunks[-1] == b"late\n"
