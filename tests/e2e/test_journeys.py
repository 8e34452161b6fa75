"""What a person does, on a portal of real processes: the lesson's objects, gangs, services, charts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters import quantities
from jobs.jobspec.lesson import TEMPLATES
from tests.e2e.portal import RunningPortal

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(240)]

LESSON = Path(__file__).parents[2] / "docs" / "examples"
NAMESPACE = "team-vision"
GROUPS = {"jobs": "/apis/batch/v1", "cronjobs": "/apis/batch/v1", "deployments": "/apis/apps/v1"}
GANG = {"name": "gang", "kind": "training", "image": "example.org/train:1", "gpus_per_worker": 8, "workers": 4}
QUICK = {"image": "example.org/train:1", "gpus_per_worker": 1, "env": {"SIM_RUN_S": "5"}}
# What differs from a sample by design: names and strategy (and the type, which items of a list do not carry).
OURS = (
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "spec.template.spec.containers[0].name",
    "spec.strategy",
)


def objects(portal: RunningPortal, cluster: str, kind: str, run: str) -> list[Any]:
    """What the cluster has of a run."""
    prefix = GROUPS.get(kind, "/api/v1")
    selector = f"labelSelector=muster.internal%2Frun%3D{run}"
    status, listed = portal.clusters[cluster].request("GET", f"{prefix}/namespaces/{NAMESPACE}/{kind}?{selector}")
    assert status == 200, listed
    return list(listed["items"] or ())


def bound_nodes(portal: RunningPortal, cluster: str, run: str) -> list[str]:
    alive = [pod for pod in objects(portal, cluster, "pods", run) if pod["status"]["phase"] in ("Pending", "Running")]
    return sorted(pod["spec"]["nodeName"] for pod in alive if pod["spec"].get("nodeName"))


def differences(sample: Any, found: Any, path: str = "") -> list[str]:
    """Where an object of the cluster lacks what the sample says."""
    if path.removeprefix(".") in OURS:
        return []
    if isinstance(sample, dict):
        if not isinstance(found, dict):
            return [path]
        return [at for key, value in sample.items() for at in differences(value, found.get(key), f"{path}.{key}")]
    if isinstance(sample, list):
        if not isinstance(found, list) or len(found) != len(sample):
            return [path]
        pairs = enumerate(zip(sample, found, strict=True))
        return [at for number, (left, right) in pairs for at in differences(left, right, f"{path}[{number}]")]
    return [] if sample == found or _is_same_amount(sample, found) else [f"{path}: {sample!r} is {found!r}"]


def _is_same_amount(sample: Any, found: Any) -> bool:
    try:
        return quantities.whole(str(sample)) == quantities.whole(str(found))
    except quantities.QuantityError:
        return False


def test_the_lessons_training_job_runs_as_it_is_where_it_was_placed(portal: RunningPortal) -> None:
    text = (LESSON / "training_job.yaml").read_text()
    job_id = portal.api.submit(text)

    job = portal.until_state(job_id, "running", "succeeded")
    place = job["placement"]
    (found,) = objects(portal, place["cluster"], "jobs", job_id)
    assert differences(yaml.safe_load(text), found) == []
    pods = objects(portal, place["cluster"], "pods", job_id)
    assert [pod["spec"]["nodeName"] for pod in pods] == [rank["node"] for rank in place["nodes"]]

    job = portal.until_state(job_id, "succeeded")
    assert (job["attempt"], job["outcome"]["exit_code"]) == (1, 0)
    # Its logs can still be read.
    status, log = portal.api.ask("GET", f"jobs/{job_id}/logs/?rank=0&tail=20")
    assert status == 200
    assert "epoch" in str(log).lower() or len(str(log)) > 0
    assert portal.held() == 0


def test_the_lessons_model_server_serves_and_scales(portal: RunningPortal) -> None:
    text = (LESSON / "inference.yaml").read_text()
    service_id = portal.api.submit(text)
    _wait_for_replicas(portal, service_id, 3)
    cluster = portal.api.job(service_id)["placement"]["cluster"]
    documents = {body["kind"]: body for body in yaml.safe_load_all(text) if body}
    (deployment,) = objects(portal, cluster, "deployments", service_id)
    assert differences(documents["Deployment"], deployment) == []
    (service,) = objects(portal, cluster, "services", service_id)
    assert {port["port"]: port["targetPort"] for port in service["spec"]["ports"]} == {80: 8080}

    for replicas in (5, 2):
        portal.api.act(service_id, "scale", {"replicas": replicas})
        _wait_for_replicas(portal, service_id, replicas)

    assert len(bound_nodes(portal, cluster, service_id)) == 2


def _wait_for_replicas(portal: RunningPortal, service_id: str, count: int) -> None:
    portal.wait_for(lambda: portal.api.job(service_id)["replicas_ready"] == count, f"{count} replicas serve")
    portal.wait_for(lambda: portal.held() == count, f"{count} GPUs are held")


@pytest.mark.parametrize("name", [template.name for template in TEMPLATES])
def test_every_template_runs_as_it_is_offered(portal: RunningPortal, name: str) -> None:
    status, template = portal.api.ask("GET", f"templates/{name}/")
    assert status == 200, template

    job = portal.until_state(portal.api.submit(template["document"]), "running")

    beside = sum(each["workers"] for each in template["document"].get("pod_sets") or ())
    assert len(bound_nodes(portal, job["placement"]["cluster"], job["id"])) == job["workers"] + beside


def test_a_schedule_makes_a_run_each_minute_that_is_placed_and_charged(portal: RunningPortal) -> None:
    schedule_id = portal.api.submit({**QUICK, "name": "minutely", "workload": "cronjob", "schedule": "* * * * *"})
    schedule = portal.until_state(schedule_id, "running")

    def runs() -> list[Any]:
        status, listed = portal.api.ask("GET", "jobs/?q=minutely")
        assert status == 200, listed
        return [job for job in listed["results"] if job["parent"] == schedule_id]

    (run,) = portal.wait_for(runs, "its first run is queued", 90)
    run = portal.until_state(run["id"], "running", "succeeded")
    assert run["placement"]["cluster"] == schedule["placement"]["cluster"]
    assert bound_nodes(portal, run["placement"]["cluster"], schedule_id) == []
    run = portal.until_state(run["id"], "succeeded")
    assert (run["gpus"], run["attempt"], run["outcome"]["exit_code"]) == (1, 1, 0)

    status, paused = portal.api.ask("POST", f"jobs/{schedule_id}/pause/", {"is_paused": True})
    assert (status, paused["is_paused"], paused["next_times"]) == (200, True, [])
    portal.api.act(schedule_id, "cancel")
    portal.until_state(schedule_id, "cancelled")
    assert objects(portal, schedule["placement"]["cluster"], "cronjobs", schedule_id) == []


def test_a_gang_of_four_whole_nodes_runs_in_one_rack(portal: RunningPortal) -> None:
    spec = {**GANG, "topology": {"mode": "require", "level": "rack"}, "accelerators": ["h100"]}
    job_id = portal.api.submit(spec)

    job = portal.until_state(job_id, "running")

    assert (job["placement"]["cluster"], job["placement"]["level"]) == ("north", "rack")
    assert bound_nodes(portal, "north", job_id) == [f"node-{number}" for number in range(4)]
    assert portal.held() == 32
    portal.until_state(job_id, "succeeded")


def test_two_gangs_of_which_one_fits_never_hold_halves(portal: RunningPortal) -> None:
    spec = {**GANG, "accelerators": ["h100"], "env": {"SIM_RUN_S": "20"}}
    status, answer = portal.api.ask("POST", "jobs/batch/?team=vision", [spec, spec])
    assert status == 201, answer
    first, second = (job["id"] for job in answer)
    moments: set[tuple[int, int]] = set()

    def both_ended() -> bool:
        counts = [len(bound_nodes(portal, "north", job_id)) for job_id in (first, second)]
        moments.add((counts[0], counts[1]))
        return all(portal.api.job(job_id)["state"] == "succeeded" for job_id in (first, second))

    portal.wait_for(both_ended, "both succeed")

    assert not any(left and right for left, right in moments), moments


def test_a_gpu_at_37_per_cent_shows_37_and_an_outage_of_its_exporter_a_gap(portal: RunningPortal) -> None:
    spec = {**GANG, "workers": 1, "gpus_per_worker": 1, "accelerators": ["a100"], "env": {"SIM_RUN_S": "6000"}}
    job_id = portal.api.submit(spec)
    job = portal.until_state(job_id, "running")
    south, node = portal.clusters["south"], job["placement"]["nodes"][0]["node"]
    index = _gpu_of(south.metrics(node), job["attempts"][0]["object_name"])

    south.control("PUT", f"/simulated/gpus/{node}/{index}", {"utilisation": 37})
    portal.wait_for(lambda: 37 in _utilisation(portal, job_id), "37 % shows", timeout_s=15)
    south.control("PUT", "/simulated/exporter", {"silent": True})
    try:
        portal.wait_for(lambda: _ends_in_a_gap(_utilisation(portal, job_id)), "a gap shows", timeout_s=30)
    finally:
        south.control("PUT", "/simulated/exporter", {"silent": False})
        south.control("DELETE", f"/simulated/gpus/{node}/{index}")


def _gpu_of(text: str, pod_prefix: str) -> str:
    line = next(
        line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_GPU_UTIL{") and f'pod="{pod_prefix}' in line
    )
    return line.partition('gpu="')[2].partition('"')[0]


def _utilisation(portal: RunningPortal, job_id: str) -> list[float | None]:
    status, answer = portal.api.ask("GET", f"jobs/{job_id}/metrics/")
    assert status == 200, answer
    chart = next(chart for chart in answer["charts"] if chart["id"] == "utilisation")
    lines = [line for line in chart["figure"]["data"] if "rank 0" in str(line.get("name"))]
    return list(lines[0]["y"]) if lines else []


def _ends_in_a_gap(values: list[float | None]) -> bool:
    return len(values) > 3 and 37 in values and values[-1] is None and values[-2] is None
