"""The objects of a team's space: stored as they were sent, or what is sent could not be compared with what is there."""

import pytest

from clusters.manifests import drift, guards, names, spaces
from clusters.manifests.spaces import SpaceValues
from clusters.manifests.values import Json
from quotas.sync.look import PLURALS
from tests.contract.conftest import Server
from tests.contract.objects import job, pods_of, unsuspend, wait_for

CLUSTER_WIDE = guards.objects(
    guards.values(domain=names.DOMAIN, installation="contract", user="", resources=["nvidia.com/gpu"]), "audit"
)


def of_space(namespace: str) -> list[Json]:
    values = SpaceValues(
        domain=names.DOMAIN,
        installation="contract",
        team="contract",
        namespace=namespace,
        gpus={"nvidia.com/gpu": 2_000},
        egress=("0.0.0.0/0", "::/0"),
    )
    return spaces.objects(values)[1:]  # the namespace is the site's


@pytest.mark.parametrize("kind", ["ResourceQuota", "LimitRange", "NetworkPolicy"])
def test_an_object_of_a_space_is_stored_as_it_was_sent(server: Server, kind: str) -> None:
    body = next(each for each in of_space(server.namespace) if each["kind"] == kind)

    server.gateway.create(PLURALS[kind], server.namespace, body)

    (found,) = server.gateway.list(PLURALS[kind], server.namespace)["items"]
    assert drift.judge(body, found, names.DOMAIN).differences == ()


@pytest.mark.parametrize("body", CLUSTER_WIDE, ids=lambda body: f"{body['kind']} {body['metadata']['name']}")
def test_a_policy_is_stored_as_it_was_sent(server: Server, body: Json) -> None:
    plural = PLURALS[body["kind"]]
    made = server.gateway.create(plural, "", body)
    try:
        assert drift.judge(body, made, names.DOMAIN).differences == ()
    finally:
        server.gateway.delete(plural, "", body["metadata"]["name"], uid=made["metadata"]["uid"])


def test_a_limit_range_fills_in_what_a_container_does_not_ask_for(server: Server) -> None:
    body = next(each for each in of_space(server.namespace) if each["kind"] == "LimitRange")
    server.gateway.create("limitranges", server.namespace, body)
    made = server.gateway.create("jobs", server.namespace, job("a", workers=1))
    server.gateway.patch_json("jobs", server.namespace, "a", unsuspend(made["metadata"]["uid"]))

    (pod,) = wait_for(lambda: pods_of(server, "a"), "the pod")

    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "32Mi"}
    assert pod["status"]["qosClass"] == "Burstable"
