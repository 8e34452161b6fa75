"""The official Python client takes the simulated cluster for a real one."""

from typing import Any

import pytest
from kubernetes import client, watch

from tests.simulated.conftest import Corner, job, pod

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def api_client(corner: Corner) -> client.ApiClient:
    configuration = client.Configuration(host=corner.cluster.url)
    configuration.api_key = {"authorization": f"Bearer {corner.cluster.token}"}
    return client.ApiClient(configuration)


def test_it_lists_watches_patches_and_deletes(corner: Corner, api_client: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api_client)
    batch: Any = client.BatchV1Api(api_client)
    assert client.VersionApi(api_client).get_code().git_version == "v1.36.3+simulated"
    assert len(core.list_node().items) == 4
    batch.create_namespaced_job(corner.namespace, job("gang", 1, {"suspend": True}, env={"SIM_RUN_S": "20"}))
    version = core.list_namespaced_pod(corner.namespace, limit=1).metadata.resource_version
    resume = [
        {"op": "test", "path": "/spec/suspend", "value": True},
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]

    patched = batch.patch_namespaced_job("gang", corner.namespace, resume)

    assert patched.spec.suspend is False
    phases = []
    stream: Any = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_pod, corner.namespace, resource_version=version, timeout_seconds=20
    ):
        phases.append(event["object"].status.phase)
        if phases[-1] == "Succeeded":
            stream.stop()
    assert phases[0] == "Pending"
    assert "Running" in phases
    [name] = [each.metadata.name for each in core.list_namespaced_pod(corner.namespace).items]
    assert "done" in core.read_namespaced_pod_log(name, corner.namespace)
    batch.delete_namespaced_job("gang", corner.namespace, propagation_policy="Foreground")
    corner.cluster.wait_for(lambda: corner.items("jobs") == [], "the Job to go")


def test_its_errors_carry_the_status(corner: Corner, api_client: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api_client)
    core.create_namespaced_pod(corner.namespace, pod("one", gpus=9))

    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod(corner.namespace, pod("one", gpus=9))

    assert refused.value.status == 409
    assert '"reason":"AlreadyExists"' in str(refused.value.body)
