"""Lists and watches: nothing is missed between a list and the watch that starts from it."""

import threading
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from clusters.k8s.documents import WHOLE, Event
from clusters.k8s.values import JsonObject, NotFound, Unreachable
from tests.contract.conftest import Server
from tests.contract.objects import job, opened, unsuspend


def changes(server: Server, version: str, labels: str) -> Iterator[Event[JsonObject]]:
    for event in server.gateway.watch("jobs", WHOLE, labels=labels, resource_version=version, timeout_s=10):
        if event.type != "BOOKMARK":
            yield event


def test_labels_and_fields_select(server: Server) -> None:
    for name in ("a", "b"):
        server.gateway.create("jobs", server.namespace, job(name))
    opened(server, "c", workers=2)

    by_label = server.gateway.list("jobs", server.namespace, labels="run in (a,b)")
    by_field = server.gateway.list("pods", server.namespace, fields="status.phase=Pending,spec.nodeName=")
    nothing = server.gateway.list("pods", server.namespace, labels="run=zzz")

    assert {item["metadata"]["name"] for item in by_label["items"]} == {"a", "b"}
    assert len(by_field["items"]) == 2
    assert nothing["items"] == []
    assert nothing["metadata"]["resourceVersion"].isdigit()


def test_a_watch_continues_where_the_list_ended(server: Server) -> None:
    server.gateway.create("jobs", server.namespace, job("before"))
    labels = "run in (before,after)"
    version = server.gateway.list("jobs", server.namespace, labels=labels)["metadata"]["resourceVersion"]
    uid = server.gateway.create("jobs", server.namespace, job("after", gated=False))["metadata"]["uid"]
    server.gateway.delete("jobs", server.namespace, "after", uid=uid, propagation="Background")

    events = []
    for event in changes(server, version, labels):
        if event.object["metadata"]["namespace"] == server.namespace:
            events.append((event.type, event.object["metadata"]["name"]))
        if event.type == "DELETED":
            break

    # Its controller may touch the older one meanwhile, but that was in the list already.
    assert ("ADDED", "before") not in events
    after = [verb for verb, name in events if name == "after"]
    assert (after[0], after[-1]) == ("ADDED", "DELETED")


def test_a_watch_resumes_from_the_version_of_any_event(server: Server) -> None:
    run = f"resume-{server.namespace}"
    version = server.gateway.list("jobs")["metadata"]["resourceVersion"]
    uid = server.gateway.create("jobs", server.namespace, job(run))["metadata"]["uid"]
    server.gateway.patch_json("jobs", server.namespace, run, unsuspend(uid))
    first, second = islice(changes(server, version, f"run={run}"), 2)

    again = next(changes(server, first.object["metadata"]["resourceVersion"], f"run={run}"))

    assert again == second
    assert int(again.object["metadata"]["resourceVersion"]) > int(first.object["metadata"]["resourceVersion"])


def test_a_watch_ends_by_itself_and_not_by_an_error(server: Server) -> None:
    version = server.gateway.list("jobs")["metadata"]["resourceVersion"]

    events = list(server.gateway.watch("jobs", WHOLE, labels="run=zzz", resource_version=version, timeout_s=1))

    assert {event.type for event in events} <= {"BOOKMARK"}


def test_a_watch_from_a_version_that_is_none_is_no_answer_and_not_the_end_of_a_version(server: Server) -> None:
    with pytest.raises(Unreachable, match="resourceVersion: Invalid value"):
        next(iter(server.gateway.watch("jobs", WHOLE, resource_version="garbage", timeout_s=1)))


def test_another_thread_may_close_a_silent_watch(server: Server) -> None:
    version = server.gateway.list("jobs")["metadata"]["resourceVersion"]
    stream = server.gateway.watch("jobs", WHOLE, labels="run=zzz", resource_version=version, timeout_s=60)
    timer = threading.Timer(0.3, stream.close)
    timer.start()
    started = time.monotonic()

    events = [event for event in stream if event.type != "BOOKMARK"]

    timer.join()
    assert events == []
    assert time.monotonic() - started < 5


def test_logs_of_a_pod_that_is_not_there_are_not_found(server: Server) -> None:
    with pytest.raises(NotFound):
        server.gateway.logs(server.namespace, "nothing")


def test_the_log_of_a_pod_that_has_no_node_yet_is_empty(server: Server) -> None:
    pod = opened(server, "a", workers=1)[0]

    assert list(server.gateway.logs(server.namespace, pod["metadata"]["name"], container="main")) == []
