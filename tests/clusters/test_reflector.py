"""What a stream may do to its reader: versions expire in every way, lists are in no order, and it goes on."""

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.watch import reflector
from clusters.watch.inbox import Inbox
from clusters.watch.inventory import Catalogue
from clusters.watch.reading import Reader
from clusters.watch.reflector import Reflector, Source
from tests.clusters.scripted_server import ScriptedServer, reply, scripted_server

EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
LIST_VERSION = "100"


@pytest.fixture
def server(settings: Settings) -> Iterator[ScriptedServer]:
    settings.MUSTER_ALLOW_PLAIN_HTTP = True
    with scripted_server() as script:
        yield script


@pytest.fixture
def follow(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Reflector]]:
    """Start a reader of the server's pods."""
    monkeypatch.setattr(reflector, "LONGEST_DELAY_S", 0.02)
    monkeypatch.setattr(reflector, "FIRST_DELAY_S", 0.01)
    started: list[Reflector] = []
    with Gateway(Connection(server=server.url, token="secret")) as gateway:

        def start() -> Reflector:
            reader = Reader("muster.internal", {"muster.internal/installation": "default"}, Catalogue())
            started.append(Reflector(gateway, Source("pods"), reader, Inbox(), cluster="north"))
            started[-1].start()
            return started[-1]

        yield start
        for each in started:
            each.stop()
            each.join(5)


def pod(name: str, version: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Running"}}


class Script:
    """Lists whose last item has the lowest version; watches end as `ends` says, in turn, and then stay silent."""

    def __init__(self, *ends: str) -> None:
        self.ends, self.watched = list(ends), 0

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        if "watch=" not in handler.path:
            body = {"metadata": {"resourceVersion": LIST_VERSION}, "items": [pod("new", "90"), pod("old", "3")]}
            return reply(handler, 200, json.dumps(body).encode())
        end = self.ends[self.watched] if self.watched < len(self.ends) else "quiet"
        self.watched += 1
        if end == "by status":
            return reply(handler, 410, json.dumps(GONE).encode())
        if end == "in the stream":
            return reply(handler, 200, json.dumps(EXPIRED).encode() + b"\n")
        return reply(handler, 200, b"")


def versions(server: ScriptedServer) -> list[str]:
    """What the watches were asked to continue from."""
    queries = [parse_qs(urlsplit(line.split(" ", 1)[1]).query, keep_blank_values=True) for line in server.asked]
    return [query.get("resourceVersion", [""])[0] for query in queries if "watch" in query]


def eventually(probe: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not probe():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize("how", ["by status", "in the stream"])
def test_after_ten_expired_versions_it_still_reads_and_never_from_no_version(
    server: ScriptedServer, follow: Callable[[], Reflector], how: str
) -> None:
    script = server.answer = Script(*[how] * 10)
    follower = follow()

    eventually(lambda: script.watched >= 12 and follower.is_live)

    lists = [line for line in server.asked if "watch" not in line]
    assert len(lists) >= 11, "a new list after each"
    assert follower.is_alive()
    assert set(versions(server)) == {LIST_VERSION}


def test_a_watch_continues_from_the_version_of_the_list_and_not_of_its_last_item(
    server: ScriptedServer, follow: Callable[[], Reflector]
) -> None:
    script = server.answer = Script()
    follow()

    eventually(lambda: script.watched >= 3)

    assert set(versions(server)) == {LIST_VERSION}
