"""Watch streams: what is sent, from where, and when a version is too old."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any

import pytest

from clusters.simulated.fleet import uniform
from tests.clusters_running import SimulatedCluster, running_cluster
from tests.simulated.conftest import GATE, Corner, pod

pytestmark = pytest.mark.timeout(60)


@contextmanager
def watching(cluster: SimulatedCluster, path: str) -> Iterator[HTTPResponse]:
    connection = cluster.connect(timeout_s=10)
    connection.request("GET", path, headers={"Authorization": f"Bearer {cluster.token}"})
    yield connection.getresponse()
    connection.close()


def event(stream: HTTPResponse) -> dict[str, Any]:
    return dict(json.loads(stream.readline()))


def name_of(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def version_of(corner: Corner) -> str:
    _, answer = corner.cluster.request("GET", corner.path("pods"))
    return str(answer["metadata"]["resourceVersion"])


def test_a_watch_continues_from_a_version_without_gap_or_repeat(corner: Corner) -> None:
    corner.create("pods", pod("before", **GATE))
    version = version_of(corner)
    corner.create("pods", pod("between", **GATE))
    with watching(corner.cluster, corner.path("pods") + f"?watch=1&resourceVersion={version}") as stream:
        first = event(stream)
        corner.create("pods", pod("after", **GATE))
        second = event(stream)
        corner.cluster.request("DELETE", corner.path("pods", "before"))
        third = event(stream)

    assert [name_of(each) for each in (first, second, third)] == [
        ("ADDED", "between"), ("ADDED", "after"), ("DELETED", "before"),
    ]  # fmt: skip
    assert first["object"]["kind"] == "Pod"
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in (first, second, third)]
    assert versions == sorted(versions)


def test_a_watch_without_a_version_starts_with_what_is_there(corner: Corner) -> None:
    corner.create("pods", pod("there", **GATE))
    with watching(corner.cluster, corner.path("pods") + "?watch=1") as stream:
        assert name_of(event(stream)) == ("ADDED", "there")


def test_the_initial_list_ends_with_a_marked_bookmark(corner: Corner) -> None:
    for name in ("a", "b"):
        corner.create("pods", pod(name, **GATE))
    query = "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    with watching(corner.cluster, corner.path("pods") + query) as stream:
        events = [event(stream) for _ in range(3)]

    assert [each["type"] for each in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert events[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert "spec" not in events[2]["object"]


def test_an_object_enters_and_leaves_a_selection(corner: Corner) -> None:
    corner.create("pods", pod("one", **GATE))
    query = f"?watch=1&labelSelector=team%3Dred&resourceVersion={version_of(corner)}"
    with watching(corner.cluster, corner.path("pods") + query) as stream:
        corner.patch("pods", "one", [{"op": "add", "path": "/metadata/labels/team", "value": "red"}])
        entered = event(stream)
        corner.patch("pods", "one", [{"op": "add", "path": "/metadata/labels/team", "value": "blue"}])
        left = event(stream)

    assert [entered["type"], left["type"]] == ["ADDED", "DELETED"]
    assert left["object"]["metadata"]["labels"]["team"] == "red"


def test_a_watch_ends_after_its_time(corner: Corner) -> None:
    with watching(corner.cluster, corner.path("pods") + "?watch=1&timeoutSeconds=1") as stream:
        assert stream.read() == b""


def test_a_version_before_the_ring_is_a_410_in_the_stream(corner: Corner) -> None:
    version = version_of(corner)
    corner.cluster.control("POST", "/simulated/compact")
    with watching(corner.cluster, corner.path("pods") + f"?watch=1&resourceVersion={version}") as stream:
        assert stream.status == 200
        error = event(stream)

    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_version_before_the_ring_can_be_a_410_by_status(corner: Corner) -> None:
    version = version_of(corner)
    corner.cluster.control("POST", "/simulated/compact", {"by_status": True})

    code, answer = corner.cluster.request("GET", corner.path("pods") + f"?watch=1&resourceVersion={version}")

    assert (code, answer["reason"]) == (410, "Expired")
    corner.cluster.control("POST", "/simulated/compact", {"by_status": False})


def test_the_ring_holds_as_many_changes_as_the_option_says() -> None:
    with running_cluster(uniform(nodes=1, gpus=1), history=5) as cluster:
        corner = Corner(cluster, "default")
        version = version_of(corner)
        for number in range(6):
            corner.create("pods", pod(f"p{number}", **GATE))
        with watching(cluster, f"/api/v1/pods?watch=1&resourceVersion={version}") as stream:
            assert event(stream)["object"]["code"] == 410
        with watching(cluster, f"/api/v1/pods?watch=1&resourceVersion={version_of(corner)}") as stream:
            corner.create("pods", pod("last", **GATE))
            assert name_of(event(stream)) == ("ADDED", "last")


@pytest.mark.parametrize(
    ("version", "why"),
    [("abc", "invalid syntax"), ("-1", "invalid syntax"), ("1.5", "invalid syntax"), ("9" * 20, "value out of range")],
)
def test_a_version_that_is_no_number_is_a_500_of_a_watch_and_a_400_of_a_list(
    corner: Corner, version: str, why: str
) -> None:
    text = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": {why}'
    watch = corner.cluster.request("GET", corner.path("pods") + f"?watch=1&resourceVersion={version}")
    listed = corner.cluster.request("GET", corner.path("pods") + f"?resourceVersion={version}")

    assert (watch[0], watch[1]["message"], watch[1].get("reason")) == (500, text, None)
    assert (listed[0], listed[1]["message"]) == (400, f"invalid resource version: {text}")
    assert listed[1]["reason"] == "BadRequest"
