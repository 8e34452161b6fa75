"""What the gateway makes of answers that a well-behaved API server does not give."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pytest_django import Settings

from clusters.k8s.client import CONNECT_TIMEOUT_S
from clusters.k8s.connection import Connection
from clusters.k8s.documents import WHOLE
from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Gone, Invalid, Refused, StateMoved, Unreachable
from tests.clusters.scripted_server import ScriptedServer, reply, scripted_server


@pytest.fixture
def server(settings: Settings) -> Iterator[ScriptedServer]:
    settings.MUSTER_ALLOW_PLAIN_HTTP = True
    with scripted_server() as script:
        yield script


@pytest.fixture
def gateway(server: ScriptedServer) -> Iterator[Gateway]:
    with Gateway(Connection(server=server.url, token="secret")) as gateway:
        yield gateway


def test_the_door_loads_no_typed_class_of_the_client() -> None:
    code = (
        "import django; django.setup()\n"
        "import sys, clusters.k8s.gateway\n"
        "print(*[n for n in sys.modules if n.startswith(('kubernetes.client.api.', 'kubernetes.client.models.'))])"
    )
    root = Path(__file__).parents[2]
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"DJANGO_SETTINGS_MODULE": "portal.settings", "MUSTER_DEMO": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert loaded.stdout.strip() == ""


def test_a_redirect_is_not_followed_with_the_token(gateway: Gateway, server: ScriptedServer) -> None:
    with scripted_server() as elsewhere:
        server.answer = lambda handler: reply(handler, 302, b"", {"Location": elsewhere.url + "/steal"})

        with pytest.raises(Unreachable):
            gateway.version()

        assert elsewhere.asked == []


@pytest.mark.parametrize("status", [401, 408, 429, 500, 502, 503])
def test_answers_that_say_nothing_about_the_object_count_as_unreachable(
    gateway: Gateway, server: ScriptedServer, status: int
) -> None:
    server.answer = lambda handler: reply(handler, status, b"<html>sorry</html>")

    with pytest.raises(Unreachable):
        gateway.create("jobs", "team", {"kind": "Job"})

    assert len(server.asked) == 1  # a write is never repeated behind the caller's back


def test_a_page_that_is_not_json_is_not_taken_for_an_answer(gateway: Gateway, server: ScriptedServer) -> None:
    server.answer = lambda handler: reply(handler, 200, b"<html>welcome</html>")

    with pytest.raises(Unreachable, match="JSON"):
        gateway.version()


def test_a_refusal_carries_the_text_of_the_cluster(gateway: Gateway, server: ScriptedServer) -> None:
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": "exceeded quota: gpus"}).encode()
    server.answer = lambda handler: reply(handler, 403, body)

    with pytest.raises(Refused, match="exceeded quota: gpus"):
        gateway.create("pods", "team", {"kind": "Pod"})


@pytest.mark.parametrize(("details", "kind"), [({}, StateMoved), ({"causes": [{"field": "spec"}]}, Invalid)])
def test_a_failed_test_of_a_patch_differs_from_a_broken_rule(
    gateway: Gateway, server: ScriptedServer, details: dict[str, object], kind: type[Invalid]
) -> None:
    body = json.dumps({"kind": "Status", "reason": "Invalid", "details": details}).encode()
    server.answer = lambda handler: reply(handler, 422, body)

    with pytest.raises(Invalid) as caught:
        gateway.patch_json("pods", "team", "p", [{"op": "remove", "path": "/spec/schedulingGates/0"}])

    assert type(caught.value) is kind


def test_a_server_that_is_down_or_silent_costs_seconds_not_minutes(settings: Settings) -> None:
    settings.MUSTER_ALLOW_PLAIN_HTTP = True
    with scripted_server() as script:
        url = script.url
    started = time.monotonic()

    with Gateway(Connection(server=url)) as gateway, pytest.raises(Unreachable, match="refused"):
        gateway.version()

    assert time.monotonic() - started < CONNECT_TIMEOUT_S


def test_a_list_joins_its_pages_and_takes_null_for_empty(gateway: Gateway, server: ScriptedServer) -> None:
    pages = iter(
        [
            {"metadata": {"resourceVersion": "7", "continue": "a/b"}, "items": [{"metadata": {"managedFields": [1]}}]},
            {"metadata": {"resourceVersion": "7"}, "items": None},
        ]
    )
    server.answer = lambda handler: reply(handler, 200, json.dumps(next(pages)).encode())

    listed = gateway.list("pods", labels="a=b")

    assert listed == {"items": [{"metadata": {}}], "metadata": {"resourceVersion": "7"}}
    assert server.asked == [
        "GET /api/v1/pods?labelSelector=a%3Db&limit=500",
        "GET /api/v1/pods?labelSelector=a%3Db&limit=500&continue=a%2Fb",
    ]


def test_a_list_whose_pages_expire_starts_over(gateway: Gateway, server: ScriptedServer) -> None:
    answers = iter(
        [
            (200, {"metadata": {"resourceVersion": "1", "continue": "x"}, "items": [{"old": True}]}),
            (410, {"kind": "Status", "reason": "Expired"}),
            (200, {"metadata": {"resourceVersion": "9"}, "items": [{"new": True}]}),
        ]
    )

    def answer(handler: BaseHTTPRequestHandler) -> None:
        status, body = next(answers)
        reply(handler, status, json.dumps(body).encode())

    server.answer = answer

    assert gateway.list("pods") == {"items": [{"new": True}], "metadata": {"resourceVersion": "9"}}


@pytest.mark.parametrize("version", ["", "None"])
def test_a_watch_never_starts_from_no_version(gateway: Gateway, server: ScriptedServer, version: str) -> None:
    with pytest.raises(ValueError, match="version"):
        gateway.watch("pods", WHOLE, resource_version=version)

    assert server.asked == []


def test_an_expired_version_inside_the_stream_is_told_apart(gateway: Gateway, server: ScriptedServer) -> None:
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    body = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}\n' + json.dumps(error).encode() + b"\n"
    server.answer = lambda handler: reply(handler, 200, body)
    events = iter(gateway.watch("pods", WHOLE, resource_version="5"))

    assert next(events).type == "BOOKMARK"
    with pytest.raises(Gone):
        next(events)
    assert server.asked[-1].endswith("resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=60")


def test_a_name_cannot_climb_out_of_its_path(gateway: Gateway, server: ScriptedServer) -> None:
    gateway.get("pods", "../../x", "a/../b?c")

    assert server.asked == ["GET /api/v1/namespaces/..%2F..%2Fx/pods/a%2F..%2Fb%3Fc"]
