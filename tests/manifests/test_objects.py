"""What is sent to a cluster: golden files for the templates, and the rules that must hold for every spec."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusters.manifests import gang, hashing
from clusters.manifests.pods import SHARED_MEMORY_PATH
from clusters.manifests.values import Json
from jobs.jobspec import lesson
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values
from tests.jobspec.documents import GANG, SERVICE, TRAINING
from tests.jobspec.rendered import IDENTITY, container_of, objects_of

GOLDEN = Path(__file__).parent / "golden"
NODES = ("node-a", "node-b")


def rendered(document: Mapping[str, object], **changes: object) -> list[Json]:
    return objects_of(parse({**document, **changes}))


def pod_of(document: Mapping[str, object], **changes: object) -> Json:
    pod: Json = rendered(document, **changes)[0]["spec"]["template"]["spec"]
    return pod


def variables_of(container: Json) -> dict[str, Any]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


@pytest.mark.parametrize("template", lesson.TEMPLATES, ids=lambda template: template.name)
def test_a_template_is_rendered_as_its_golden_file_says(template: lesson.Template) -> None:
    spec = parse({**template.document, "team": "vision"})
    golden = json.loads((GOLDEN / f"{template.name}.json").read_text(encoding="utf-8"))
    assert objects_of(spec, NODES[: spec.workers]) == golden


def test_a_single_worker_keeps_the_retries_of_its_author() -> None:
    job = rendered(TRAINING, backoff_limit=3, ttl_s=600)[0]["spec"]
    assert (job["backoffLimit"], job["ttlSecondsAfterFinished"]) == (3, 600)
    assert job["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert "podFailurePolicy" not in job
    assert "subdomain" not in job["template"]["spec"]


def test_a_worker_that_never_retries_leaves_its_pod_for_the_logs() -> None:
    assert pod_of(TRAINING, backoff_limit=0)["restartPolicy"] == "Never"


def test_a_gang_ends_with_its_first_failure() -> None:
    job, service = rendered(GANG, backoff_limit=5)
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (4, 4, "Indexed")
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailJob"]
    assert spec["podReplacementPolicy"] == "Failed"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["metadata"]["name"] == spec["template"]["spec"]["subdomain"]


@pytest.mark.parametrize("document", [TRAINING, GANG, SERVICE])
def test_no_pod_is_born_without_our_gate(document: Mapping[str, object]) -> None:
    assert pod_of(document)["schedulingGates"] == [{"name": "muster.internal/placement"}]


@pytest.mark.parametrize("document", [TRAINING, GANG])
def test_a_job_is_born_suspended(document: Mapping[str, object]) -> None:
    assert rendered(document)[0]["spec"]["suspend"] is True


def test_ranks_find_each_other() -> None:
    variables = variables_of(container_of(parse(GANG)))
    index = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
    assert variables == {
        "PET_NNODES": "4",
        "PET_NPROC_PER_NODE": "8",
        "PET_NODE_RANK": index,
        "PET_MASTER_ADDR": "m-7f3k2-a1-0.m-7f3k2-a1",
        "PET_MASTER_PORT": "29500",
        "MASTER_ADDR": "m-7f3k2-a1-0.m-7f3k2-a1",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "4",
        "RANK": index,
    }


def test_a_gang_that_starts_smaller_is_told_its_real_size() -> None:
    job = objects_of(parse({**GANG, "min_workers": 1}), ("node-a", "node-b", "node-c"))[0]
    assert job["spec"]["completions"] == 3
    assert variables_of(job["spec"]["template"]["spec"]["containers"][0])["WORLD_SIZE"] == "3"


def test_a_gang_that_starts_with_one_worker_still_has_a_rendezvous() -> None:
    objects = objects_of(parse({**GANG, "min_workers": 1, "backoff_limit": 2}), ("node-a",))
    assert [item["kind"] for item in objects] == ["Job", "Service"]
    assert objects[0]["spec"]["backoffLimit"] == 0
    assert variables_of(objects[0]["spec"]["template"]["spec"]["containers"][0])["WORLD_SIZE"] == "1"


def test_a_quick_run_is_one_bare_pod_that_the_cluster_ends_if_we_do_not() -> None:
    place = Place(accelerator_resource="nvidia.com/gpu", code_image="git", start_s=960)
    spec = parse({**TRAINING, "workload": "pod", "max_runtime_s": 600})
    [pod] = gang.objects(gang_values(spec, IDENTITY, place))
    assert (pod["kind"], pod["spec"]["restartPolicy"]) == ("Pod", "Never")
    assert pod["spec"]["schedulingGates"] == [{"name": "muster.internal/placement"}]
    assert pod["spec"]["activeDeadlineSeconds"] == 600 + 960
    assert pod["metadata"]["labels"]["muster.internal/rank"] == "0"


def test_each_further_set_of_pods_is_a_job_of_its_own_without_gpus() -> None:
    pod_sets = [{"name": "ps", "workers": 2, "image": "ps:1", "env": {"A": "b"}, "cpu": {"request": "4"}}]
    job, service, servers = rendered(GANG, pod_sets=pod_sets, secrets=[{"name": "s", "key": "k", "env": "TOKEN"}])
    assert (job["metadata"]["name"], servers["metadata"]["name"]) == ("m-7f3k2-a1", "m-7f3k2-a1-ps")
    assert (servers["spec"]["completions"], servers["spec"]["suspend"]) == (2, True)
    pod = servers["spec"]["template"]["spec"]
    assert pod["schedulingGates"] == [{"name": "muster.internal/placement"}]
    assert pod["containers"][0]["image"] == "ps:1"
    assert pod["containers"][0]["resources"] == {"requests": {"cpu": "4"}}
    labels = servers["spec"]["template"]["metadata"]["labels"]
    assert labels["muster.internal/first-rank"] == "4"
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= job["spec"]["template"]["metadata"]["labels"].items()
    variables = variables_of(pod["containers"][0])
    hosts = "m-7f3k2-a1-ps-0.m-7f3k2-a1,m-7f3k2-a1-ps-1.m-7f3k2-a1"
    assert variables["MUSTER_HOSTS_PS"] == hosts
    assert variables["MUSTER_HOSTS_WORKER"].startswith("m-7f3k2-a1-0.m-7f3k2-a1,")
    assert variables["MASTER_ADDR"] == "m-7f3k2-a1-0.m-7f3k2-a1"
    assert variables["A"] == "b"
    assert "TOKEN" in variables
    assert "RANK" not in variables
    workers = variables_of(job["spec"]["template"]["spec"]["containers"][0])
    assert workers["MUSTER_HOSTS_PS"] == hosts
    assert workers["WORLD_SIZE"] == "4"


def test_a_stateful_set_makes_all_its_ranks_at_once_and_numbers_them_itself() -> None:
    stateful, service = rendered(GANG, workload="statefulset")
    spec = stateful["spec"]
    assert (stateful["kind"], spec["replicas"], spec["podManagementPolicy"]) == ("StatefulSet", 4, "Parallel")
    assert spec["serviceName"] == service["metadata"]["name"] == stateful["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert spec["selector"]["matchLabels"] == service["spec"]["selector"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    variables = variables_of(spec["template"]["spec"]["containers"][0])
    ordinal = {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}
    assert variables["PET_NODE_RANK"] == variables["RANK"] == ordinal
    assert variables["PET_MASTER_ADDR"] == "m-7f3k2-a1-0.m-7f3k2-a1"
    assert "activeDeadlineSeconds" not in spec["template"]["spec"]


def test_shared_memory_is_a_bounded_volume() -> None:
    pod = pod_of(TRAINING, shared_memory="8Gi")
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in pod["volumes"]
    assert {"name": "shm", "mountPath": SHARED_MEMORY_PATH} in pod["containers"][0]["volumeMounts"]


def test_huge_pages_are_asked_for_and_limited_alike_and_mounted() -> None:
    pod = pod_of(TRAINING, memory={"request": "8Gi"}, huge_pages={"amount": "1Gi"})
    [container] = pod["containers"]
    assert container["resources"] == {
        "limits": {"nvidia.com/gpu": "1", "hugepages-2Mi": "1Gi"},
        "requests": {"nvidia.com/gpu": "1", "hugepages-2Mi": "1Gi", "memory": "8Gi"},
    }
    assert pod["volumes"] == [{"name": "hugepages", "emptyDir": {"medium": "HugePages-2Mi"}}]
    assert container["volumeMounts"] == [{"name": "hugepages", "mountPath": "/dev/hugepages"}]


def test_every_container_of_a_guaranteed_pod_is_limited_to_what_it_asks_for() -> None:
    amounts = {"cpu": {"request": "8"}, "memory": {"request": "64Gi"}}
    pod = pod_of(TRAINING, qos="guaranteed", **amounts, code={"git_url": "https://git.example/x"})
    for container in (*pod["containers"], *pod["initContainers"]):
        resources = container["resources"]
        assert {"cpu": "8", "memory": "64Gi"}.items() <= resources["limits"].items()
        assert resources["limits"] == resources["requests"]


def test_the_runtime_class_is_named() -> None:
    assert pod_of(TRAINING, runtime_class="kata-qemu")["runtimeClassName"] == "kata-qemu"
    assert "runtimeClassName" not in pod_of(TRAINING)


def test_wished_gpu_types_are_required_of_the_node() -> None:
    place = Place(accelerator_resource="nvidia.com/gpu", code_image="git", node_labels={"gpu": ("A100", "H100")})
    spec = gang.job(gang_values(parse(TRAINING), IDENTITY, place))["spec"]["template"]["spec"]
    term = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["A100", "H100"]}]}
    assert spec["affinity"] == {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }


def test_the_cluster_ends_a_job_that_the_portal_does_not() -> None:
    place = Place(accelerator_resource="nvidia.com/gpu", code_image="git", start_s=960)
    limited = gang.job(gang_values(parse({**TRAINING, "max_runtime_s": 3600}), IDENTITY, place))["spec"]
    assert limited["activeDeadlineSeconds"] == 3600 + 960
    assert "activeDeadlineSeconds" not in gang.job(gang_values(parse(TRAINING), IDENTITY, place))["spec"]


def test_volumes_whose_paths_look_alike_get_names_of_their_own() -> None:
    paths = ["/a/b", "/a-b", "/A/b", "/shm", "/secret", "/workspace-x", "/..a", "/" + "x" * 200, "/" + "x" * 201]
    volumes = [{"claim": "c", "mount_path": path} for path in paths]
    pod = pod_of(
        TRAINING,
        volumes=volumes,
        shared_memory="1Gi",
        secrets=[{"name": "s", "key": "k", "mount_path": f"/run/k{i}"} for i in range(3)],
        code={"git_url": "https://git.example/x", "secret": "s"},
    )
    given = [volume["name"] for volume in pod["volumes"]]
    assert len(set(given)) == len(given) == len(paths) + 1 + 3 + 2
    assert all(len(name) <= 63 and name.strip("-") == name for name in given)
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} <= set(given)


def test_secrets_are_references_in_variables_and_files() -> None:
    secrets = [{"name": "hub", "key": "token", "env": "HF_TOKEN"}, {"name": "ssh", "key": "id", "mount_path": "/k/id"}]
    pod = pod_of(TRAINING, secrets=secrets)
    reference = {"secretKeyRef": {"name": "hub", "key": "token"}}
    assert pod["containers"][0]["env"] == [{"name": "HF_TOKEN", "valueFrom": reference}]
    assert pod["volumes"] == [{"name": "secret", "secret": {"secretName": "ssh"}}]
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "secret", "mountPath": "/k/id", "subPath": "id", "readOnly": True}
    ]


def test_the_command_starts_in_the_checked_out_folder() -> None:
    pod = pod_of(TRAINING, code={"git_url": "https://git.example/x", "path": "src/train"}, memory={"limit": "8Gi"})
    assert pod["containers"][0]["workingDir"] == "/workspace/src/train"
    [init] = pod["initContainers"]
    assert init["resources"] == {"limits": {"memory": "8Gi"}, "requests": {"memory": "8Gi"}}
    assert not any("gpu" in name for name in init["resources"]["limits"])


def test_a_lost_node_is_left_after_a_minute() -> None:
    lost = [item for item in pod_of(TRAINING)["tolerations"] if item.get("effect") == "NoExecute"]
    assert {item["tolerationSeconds"] for item in lost} == {60}
    assert len(lost) == 2


def test_mig_slices_tolerate_the_taint_of_whole_gpus() -> None:
    place = Place(accelerator_resource="nvidia.com/mig-1g.10gb", code_image="git")
    spec = gang.job(gang_values(parse(TRAINING), IDENTITY, place))["spec"]["template"]["spec"]
    keys = {item["key"] for item in spec["tolerations"]}
    assert {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "muster.internal/dedicated"} <= keys
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1"}


def test_an_attempt_knows_its_checkpoints_and_how_often_it_began() -> None:
    spec = parse({**TRAINING, "checkpoint": {"path": "/c", "interval_s": 60}})
    container = objects_of(spec, restarts=2)[0]["spec"]["template"]["spec"]["containers"][0]
    assert variables_of(container) == {
        "MUSTER_CHECKPOINT_PATH": "/c",
        "MUSTER_RESTARTS": "2",
        "MUSTER_CHECKPOINT_INTERVAL_S": "60",
    }


def test_a_service_never_surges_and_spreads_softly() -> None:
    spec = rendered(SERVICE, replicas=3)[0]["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    [spread] = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_two_services_from_one_template_share_no_pods() -> None:
    deployment, service = rendered(SERVICE, labels={"app": "inference"})
    selector = {"app": "inference", "muster.internal/run": "7f3k2"}
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == selector
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_a_service_without_a_port_to_offer_has_no_service_object() -> None:
    assert [item["kind"] for item in rendered(SERVICE, service_port=None)] == ["Deployment"]


def test_the_fingerprint_changes_with_the_spec_and_not_with_the_worker_that_renders_it() -> None:
    key = "muster.internal/spec-hash"
    place = Place(accelerator_resource="nvidia.com/gpu", code_image="git")
    first, later = (
        gang.job(gang_values(parse(TRAINING), replace(IDENTITY, epoch=epoch), place))["metadata"] for epoch in (1, 2)
    )
    assert first["labels"] != later["labels"]
    assert first["annotations"][key] == later["annotations"][key]
    assert rendered(TRAINING, gpus_per_worker=2)[0]["metadata"]["annotations"][key] != first["annotations"][key]
    assert rendered(GANG)[0]["metadata"]["annotations"][key] != first["annotations"][key]


def test_the_service_goes_when_its_job_goes() -> None:
    job, service = rendered(GANG)
    created = {**job, "metadata": {**job["metadata"], "uid": "u1"}}
    assert hashing.owned_by(service, created)["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "m-7f3k2-a1", "uid": "u1"}
    ]


def test_the_objects_are_json_that_nothing_else_shares() -> None:
    job, service = rendered(GANG)
    before = json.dumps(service)
    job["metadata"]["labels"]["x"] = "y"
    assert "x" not in job["spec"]["template"]["metadata"]["labels"]
    assert json.dumps(service) == before
