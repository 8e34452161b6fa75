"""Every value of a document keeps its limit, and what is left out gets its default."""

from collections.abc import Mapping

import pytest

from jobs.jobspec.checks import parse
from jobs.jobspec.fields import Amount, Probe, Topology
from jobs.jobspec.problem import SpecError
from tests.jobspec.documents import GANG, SERVICE, TRAINING, faults_of, problems_of

MEGABYTE = "x" * 2**20
WRONG = [
    ("name", "", "required"),
    ("name", "Train", "bad_name"),
    ("name", "train-", "bad_name"),
    ("name", "a.b", "bad_name"),
    ("name", "a_b", "bad_name"),
    ("name", "🚀", "bad_name"),
    ("name", "تدريب", "bad_name"),
    ("name", "a\n", "bad_name"),
    ("name", "a" * 41, "too_long"),
    ("name", MEGABYTE, "too_long"),
    ("name", 7, "wrong_type"),
    ("name", ["a"], "wrong_type"),
    ("name", "a\0", "nul_byte"),
    ("name", "\ud800", "bad_text"),
    ("team", None, "required"),
    ("team", "Vision", "bad_name"),
    ("queue", "a b", "bad_name"),
    ("kind", "serving", "bad_choice"),
    ("kind", 1, "wrong_type"),
    ("workload", "daemonset", "bad_choice"),
    ("priority", "system-node-critical", "reserved"),
    ("priority", "High", "bad_name"),
    ("labels", ["a"], "wrong_type"),
    ("labels", {f"k{i}": "v" for i in range(33)}, "too_many"),
    ("description", "x" * 2001, "too_long"),
    ("image", "", "required"),
    ("image", "app: 1", "bad_image"),
    ("image_pull_secret", "A", "bad_name"),
    ("command", "python train.py", "wrong_type"),
    ("command", ["a"] * 257, "too_many"),
    ("args", ["x" * 32_768] * 9, "too_long"),
    ("env", {f"K{i}": "" for i in range(201)}, "too_many"),
    ("env", {f"K{i}": "x" * 32_768 for i in range(9)}, "too_long"),
    ("env", [{"name": "A", "value": "b"}], "wrong_type"),
    ("workers", 0, "too_small"),
    ("workers", 513, "too_big"),
    ("workers", -1, "too_small"),
    ("workers", True, "wrong_type"),
    ("workers", 2.0, "wrong_type"),
    ("workers", "2", "wrong_type"),
    ("workers", float("nan"), "wrong_type"),
    ("workers", 10**5000, "too_big"),
    ("min_workers", 2, "min_workers_above_workers"),
    ("gpus_per_worker", 0, "too_small"),
    ("gpus_per_worker", 17, "too_big"),
    ("accelerators", "A100", "wrong_type"),
    ("shared_memory", "8gi", "bad_quantity"),
    ("shared_memory", "0", "not_above_zero"),
    ("shared_memory", True, "wrong_type"),
    ("cpu", "4", "wrong_type"),
    ("qos", "best_effort", "bad_choice"),
    ("runtime_class", "Kata", "bad_name"),
    ("huge_pages", "1Gi", "wrong_type"),
    ("topology", "rack", "wrong_type"),
    ("spread_policy", "huddle", "bad_choice"),
    ("volumes", {"claim": "a"}, "wrong_type"),
    ("volumes", [{}] * 33, "too_many"),
    ("max_runtime_s", 0, "too_small"),
    ("backoff_limit", 101, "too_big"),
    ("ttl_s", 59, "too_small"),
    ("schedule", "0 0 * * *", "schedule_of_cronjobs_only"),
    ("pod_sets", {"name": "ps"}, "wrong_type"),
    ("pod_sets", [{"name": f"ps-{i}"} for i in range(5)], "too_many"),
    ("replicas", 3, "only_for_inference"),
    ("port", 8080, "only_for_inference"),
    ("readiness", {"path": "/"}, "only_for_inference"),
    ("parent", "../x", "bad_id"),
    ("gpus", 4, "unknown_field"),
]
WRONG_INSIDE: list[tuple[Mapping[str, object], str, str]] = [
    ({"labels": {"kubernetes.io/x": "v"}}, "labels.kubernetes.io/x", "reserved"),
    ({"labels": {"muster.internal/run": "v"}}, "labels.muster.internal/run", "reserved"),
    ({"labels": {"a b": "v"}}, "labels.a b", "bad_label_key"),
    ({"labels": {"a": "-"}}, "labels.a", "bad_label_value"),
    ({"labels": {7: "v"}}, "labels.?", "wrong_type"),
    ({"args": ["a", 7]}, "args[1]", "wrong_type"),
    ({"args": ["\0"]}, "args[0]", "nul_byte"),
    ({"env": {"1A": "v"}}, "env.1A", "bad_env_name"),
    ({"env": {"A=B": "v"}}, "env.A=B", "bad_env_name"),
    ({"env": {"A": "\0"}}, "env.A", "nul_byte"),
    ({"env": {"A": 7}}, "env.A", "wrong_type"),
    ({"env": {"A": MEGABYTE}}, "env.A", "too_long"),
    ({"secrets": [{"name": "s", "key": "k"}]}, "secrets[0]", "env_or_mount_path"),
    ({"secrets": [{"name": "s", "key": "k", "env": "A", "mount_path": "/a"}]}, "secrets[0]", "env_or_mount_path"),
    ({"secrets": [{"name": "s", "key": "..", "env": "A"}]}, "secrets[0].key", "bad_secret_key"),
    ({"env": {"A": ""}, "secrets": [{"name": "s", "key": "k", "env": "A"}]}, "secrets[0].env", "duplicate"),
    ({"cpu": {}}, "cpu.request", "required"),
    ({"cpu": {"request": "2", "limit": "1500m"}}, "cpu.request", "request_above_limit"),
    ({"cpu": {"request": "-1"}}, "cpu.request", "not_above_zero"),
    ({"cpu": {"request": float("inf")}}, "cpu.request", "wrong_type"),
    ({"memory": {"limit": "1 Gi"}}, "memory.limit", "bad_quantity"),
    ({"memory": {"limit": "1Gi"}, "shared_memory": "2Gi"}, "shared_memory", "shared_memory_above_limit"),
    ({"memory": {"request": "1Gi"}, "huge_pages": {}}, "huge_pages.amount", "required"),
    ({"memory": {"request": "1Gi"}, "huge_pages": {"amount": "3Mi"}}, "huge_pages.amount", "not_whole_pages"),
    ({"huge_pages": {"amount": "4Mi", "size": "4Ki"}}, "huge_pages.size", "bad_choice"),
    ({"huge_pages": {"amount": "4Mi"}}, "huge_pages", "huge_pages_alone"),
    ({"qos": "guaranteed", "cpu": {"request": "4"}}, "memory", "needed_for_guaranteed"),
    (
        {"qos": "guaranteed", "cpu": {"request": "4", "limit": "8"}, "memory": {"limit": "1Gi"}},
        "cpu.limit",
        "guaranteed_request_limit_differ",
    ),
    ({"pod_sets": [{}]}, "pod_sets[0].name", "required"),
    ({"pod_sets": [{"name": "parameter-server"}]}, "pod_sets[0].name", "too_long"),
    ({"pod_sets": [{"name": "ps", "workers": 65}]}, "pod_sets[0].workers", "too_big"),
    ({"pod_sets": [{"name": "ps", "gpus_per_worker": 1}]}, "pod_sets[0].gpus_per_worker", "unknown_field"),
    ({"pod_sets": [{"name": "ps"}, {"name": "ps"}]}, "pod_sets[1].name", "duplicate"),
    ({"pod_sets": [{"name": "worker"}]}, "pod_sets[0].name", "duplicate"),
    ({"pod_sets": [{"name": "ps", "env": {"RANK": "1"}}]}, "pod_sets[0].env.RANK", "reserved"),
    ({"pod_sets": [{"name": "ps"}], "env": {"MUSTER_HOSTS_PS": "h"}}, "env.MUSTER_HOSTS_PS", "reserved"),
    ({"checkpoint": {"path": "/c"}, "env": {"MUSTER_RESTARTS": "0"}}, "env.MUSTER_RESTARTS", "reserved"),
    (
        {"pod_sets": [{"name": "ps", "env": {"MUSTER_HOSTS_WORKER": "h"}}]},
        "pod_sets[0].env.MUSTER_HOSTS_WORKER",
        "reserved",
    ),
    (
        {
            "qos": "guaranteed",
            "cpu": {"request": "4"},
            "memory": {"limit": "1Gi"},
            "pod_sets": [{"name": "ps", "cpu": {"request": "1", "limit": "2"}, "memory": {"request": "1Gi"}}],
        },
        "pod_sets[0].cpu.limit",
        "guaranteed_request_limit_differ",
    ),
    ({"pod_sets": [{"name": "ps"}], "workers": 2, "min_workers": 1}, "min_workers", "whole_with_pod_sets"),
    ({"pod_sets": [{"name": "ps"}], "workload": "pod"}, "pod_sets", "pod_sets_of_jobs_only"),
    ({"topology": {"mode": "require"}}, "topology.level", "required"),
    ({"topology": {"level": "rack"}}, "topology.level", "level_without_mode"),
    ({"volumes": [{"mount_path": "/d"}]}, "volumes[0].claim", "required"),
    ({"volumes": [{"clam": "c", "claim": "c", "mount_path": "/d"}]}, "volumes[0].clam", "unknown_field"),
    ({"volumes": [{"claim": "c", "mount_path": "data"}]}, "volumes[0].mount_path", "bad_path"),
    ({"volumes": [{"claim": "c", "mount_path": "/a/../b"}]}, "volumes[0].mount_path", "bad_path"),
    ({"volumes": [{"claim": "c", "mount_path": "/"}]}, "volumes[0].mount_path", "bad_path"),
    ({"volumes": [{"claim": "c", "mount_path": "/proc/x"}]}, "volumes[0].mount_path", "reserved"),
    ({"volumes": [{"claim": "c", "mount_path": "/d", "read_only": 1}]}, "volumes[0].read_only", "wrong_type"),
    ({"volumes": [{"claim": c, "mount_path": "/d"} for c in "ab"]}, "volumes[1].mount_path", "duplicate"),
    ({"tolerations": [{"operator": "Exists"}]}, "tolerations[0].key", "required"),
    ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "tolerations[0].value", "value_with_exists"),
    ({"tolerations": [{"key": "a", "seconds": 5}]}, "tolerations[0].seconds", "seconds_without_no_execute"),
    ({"checkpoint": {"path": "/c", "interval_s": 1}}, "checkpoint.interval_s", "too_small"),
    ({"accelerators": ["A100", "A100"]}, "accelerators[1]", "duplicate"),
    ({"code": {"git_url": "file:///etc"}}, "code.git_url", "bad_git_url"),
    ({"code": {"git_url": "https:///x"}}, "code.git_url", "bad_git_url"),
    ({"code": {"git_url": "https://me:pw@h.example/x"}}, "code.git_url", "bad_git_url"),
    ({"code": {"git_url": "ssh://-oProxyCommand=x/y"}}, "code.git_url", "bad_git_url"),
    ({"code": {"git_url": "ext::sh -c x"}}, "code.git_url", "bad_git_url"),
    ({"code": {"git_url": "https://h.example/x", "ref": "--upload-pack=x"}}, "code.ref", "bad_git_ref"),
    ({"code": {"git_url": "https://h.example/x", "ref": "$(x)"}}, "code.ref", "bad_git_ref"),
    ({"code": {"git_url": "https://h.example/x", "path": "../x"}}, "code.path", "bad_relative_path"),
    (
        {"code": {"git_url": "https://h.example/x"}, "volumes": [{"claim": "c", "mount_path": "/workspace"}]},
        "volumes[0].mount_path",
        "duplicate",
    ),
]


# Values of a megabyte make poor names of tests.
@pytest.mark.parametrize(("field", "value", "code"), WRONG, ids=[f"{i}-{c[0]}-{c[2]}" for i, c in enumerate(WRONG)])
def test_a_wrong_value_is_told_with_its_field(field: str, value: object, code: str) -> None:
    assert faults_of({**TRAINING, field: value}) == [(field, code)]


@pytest.mark.parametrize(("document", "field", "code"), WRONG_INSIDE, ids=[f"{c[1]}-{c[2]}" for c in WRONG_INSIDE])
def test_a_wrong_value_in_a_part_is_told_with_its_path(document: Mapping[str, object], field: str, code: str) -> None:
    assert (field, code) in faults_of({**TRAINING, **document})


@pytest.mark.parametrize("document", [None, [], "x", 7, True, float("nan")])
def test_a_document_that_is_no_map_is_refused(document: object) -> None:
    assert faults_of(document) == [("", "wrong_type")]


def test_all_faults_are_told_at_once() -> None:
    faults = faults_of({"name": "A", "workers": 0, "volumes": [{}]})
    assert {field for field, _ in faults} == {
        "name",
        "team",
        "image",
        "workers",
        "volumes[0].claim",
        "volumes[0].mount_path",
    }


def test_a_limit_stands_in_the_numbers_of_its_problem() -> None:
    [problem] = problems_of({**TRAINING, "gpus_per_worker": 99})
    assert problem.numbers == {"value": 99, "max": 16}


def test_an_unknown_field_is_answered_with_the_nearest_known_one() -> None:
    [problem] = problems_of({**TRAINING, "gpus_per_workers": 4})
    assert problem.numbers == {"suggestion": "gpus_per_worker"}


def test_ten_thousand_unknown_fields_are_told_in_a_few_lines() -> None:
    problems = problems_of({**TRAINING, **{f"field{i}": i for i in range(10_000)}})
    assert len(problems) == 11
    assert problems[-1].numbers == {"count": 10_000}


NIGHTLY = {**TRAINING, "workload": "cronjob", "schedule": "0 3 * * *"}


def test_a_cron_text_is_a_schedule_with_safe_defaults() -> None:
    schedule = parse(NIGHTLY).schedule
    assert schedule is not None
    assert (schedule.cron, schedule.time_zone, schedule.concurrency) == ("0 3 * * *", "Etc/UTC", "forbid")
    assert (schedule.starting_deadline_s, schedule.keep_succeeded, schedule.keep_failed) == (None, 3, 1)
    assert parse(parse(NIGHTLY).as_document()) == parse(NIGHTLY)


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"schedule": None}, ("schedule", "required")),
        ({"schedule": ""}, ("schedule", "required")),
        ({"schedule": {}}, ("schedule.cron", "required")),
        ({"schedule": 5}, ("schedule", "wrong_type")),
        ({"schedule": "0 3 * *"}, ("schedule", "cron_fields")),
        ({"schedule": {"cron": "@daily", "time_zone": "Mars/Olympus"}}, ("schedule.time_zone", "bad_time_zone")),
        ({"schedule": {"cron": "@daily", "time_zone": "../etc/passwd"}}, ("schedule.time_zone", "bad_time_zone")),
        ({"schedule": {"cron": "@daily", "concurrency": "never"}}, ("schedule.concurrency", "bad_choice")),
        ({"schedule": {"cron": "@daily", "starting_deadline_s": 5}}, ("schedule.starting_deadline_s", "too_small")),
        ({"schedule": {"cron": "@daily", "keep_failed": 0}}, ("schedule.keep_failed", "too_small")),
        ({"schedule": {"cron": "@daily", "keep_succeeded": 51}}, ("schedule.keep_succeeded", "too_big")),
        ({"schedule": {"cron": "@daily", "suspend": True}}, ("schedule.suspend", "unknown_field")),
        ({"workers": 2, "min_workers": 1}, ("min_workers", "whole_on_schedule")),
        ({"workers": 2, "env": {"MUSTER_JOB": "x"}}, ("env.MUSTER_JOB", "reserved")),
        ({"pod_sets": [{"name": "ps"}]}, ("pod_sets", "pod_sets_of_jobs_only")),
        ({"kind": "inference"}, ("workload", "kind_workload_differ")),
        ({"workload": "job"}, ("schedule", "schedule_of_cronjobs_only")),
    ],
)
def test_a_wrong_schedule_is_named_by_its_field(document: dict[str, object], fault: tuple[str, str]) -> None:
    assert fault in faults_of({**NIGHTLY, **document})


def test_an_empty_schedule_and_no_pod_sets_are_as_good_as_none() -> None:
    assert faults_of({**TRAINING, "schedule": "", "pod_sets": []}) == []


def test_kind_and_workload_follow_from_each_other() -> None:
    assert parse(TRAINING).workload == "job"
    assert parse(SERVICE).workload == "deployment"
    assert parse({**TRAINING, "workload": "deployment"}).kind == "inference"
    assert faults_of({**SERVICE, "workload": "job"}) == [("workload", "kind_workload_differ")]
    assert faults_of({**SERVICE, "workload": "statefulset"}) == [("workload", "kind_workload_differ")]


def test_one_worker_with_pods_beside_it_is_a_gang() -> None:
    spec = parse({**TRAINING, "pod_sets": [{"name": "ps", "workers": 2, "memory": {"request": "1Gi"}}]})
    assert spec.is_gang
    assert spec.backoff_limit == 0
    assert spec.gpus == 1
    assert parse(spec.as_document()) == spec


def test_a_quick_run_is_one_pod_that_is_tried_once() -> None:
    spec = parse({**TRAINING, "workload": "pod"})
    assert (spec.kind, spec.workload, spec.backoff_limit, spec.ttl_s) == ("training", "pod", 0, 86_400)
    assert parse(spec.as_document()) == spec
    assert faults_of({**GANG, "workload": "pod"}) == [("workers", "one_worker_only")]
    assert faults_of({**TRAINING, "workload": "pod", "backoff_limit": 1}) == [("backoff_limit", "no_retries_of_pods")]


def test_a_stateful_set_runs_until_it_is_stopped_and_nothing_of_it_stays() -> None:
    spec = parse({**GANG, "workload": "statefulset"})
    assert (spec.kind, spec.workers, spec.backoff_limit, spec.ttl_s) == ("training", 4, 3, None)
    assert parse(spec.as_document()) == spec
    assert faults_of({**GANG, "workload": "statefulset", "ttl_s": 600}) == [("ttl_s", "not_of_stateful_sets")]


@pytest.mark.parametrize("field", ["max_runtime_s", "backoff_limit", "ttl_s", "checkpoint"])
def test_a_field_of_training_is_refused_for_a_service(field: str) -> None:
    assert faults_of({**SERVICE, field: 100}) == [(field, "only_for_training")]


def test_guaranteed_resources_need_one_figure_each() -> None:
    spec = parse({**TRAINING, "qos": "guaranteed", "cpu": {"request": "8"}, "memory": {"limit": "64Gi"}})
    assert spec.cpu == Amount(request="8", limit="8")
    assert spec.memory == Amount(request="64Gi", limit="64Gi")
    assert parse(spec.as_document()) == spec


def test_a_service_has_one_worker_per_replica() -> None:
    assert faults_of({**SERVICE, "workers": 2, "min_workers": 1}) == [("workers", "only_for_training")]


def test_a_gang_does_not_retry_by_itself_and_a_single_job_does() -> None:
    assert parse(GANG).backoff_limit == 0
    assert parse(TRAINING).backoff_limit == 3


def test_closeness_is_preferred_from_nine_gpus_on() -> None:
    eight, nine = {"workers": 8, "gpus_per_worker": 1}, {"workers": 9, "gpus_per_worker": 1}
    assert parse({**TRAINING, **eight}).topology == Topology(mode="none")
    assert parse({**TRAINING, **nine}).topology == Topology(mode="prefer", level="rack")
    assert parse({**TRAINING, **nine, "topology": {"mode": "none"}}).topology == Topology(mode="none")


def test_all_workers_are_needed_unless_fewer_are_named() -> None:
    assert parse(GANG).min_workers == 4
    assert parse({**GANG, "min_workers": 2}).min_workers == 2


def test_a_limit_alone_is_the_request_too() -> None:
    assert parse({**TRAINING, "cpu": {"limit": 16}}).cpu == Amount(request="16", limit="16")


def test_probes_have_the_delays_of_a_model_server() -> None:
    spec = parse({**SERVICE, "readiness": {"path": "/health"}, "liveness": {"path": "/health"}})
    assert spec.readiness == Probe(path="/health", port=8080, delay_s=30, period_s=10)
    assert spec.liveness == Probe(path="/health", port=8080, delay_s=60, period_s=30)


def test_null_means_no_port_no_service_and_no_clean_up() -> None:
    service = parse({**SERVICE, "port": None, "service_port": None})
    assert (service.port, service.service_port) == (None, None)
    assert parse(service.as_document()) == service
    training = parse({**TRAINING, "ttl_s": None})
    assert training.ttl_s is None
    assert parse(training.as_document()) == training


def test_a_service_may_have_no_replicas() -> None:
    assert parse({**SERVICE, "replicas": 0}).gpus == 0
    assert faults_of({**SERVICE, "replicas": 101}) == [("replicas", "too_big")]


def test_the_variables_of_a_gang_are_reserved_for_gangs_only() -> None:
    assert faults_of({**GANG, "env": {"MASTER_ADDR": "x"}}) == [("env.MASTER_ADDR", "reserved")]
    assert faults_of({**TRAINING, "env": {"MASTER_ADDR": "x"}}) == []


def test_a_half_typed_form_may_miss_fields_but_not_break_limits() -> None:
    spec = parse({"gpus_per_worker": 4}, partial=True)
    assert (spec.name, spec.image, spec.gpus) == ("", "", 4)
    with pytest.raises(SpecError, match="workers: too_big"):
        parse({"workers": 999}, partial=True)
    with pytest.raises(SpecError, match="min_workers"):
        parse({"workers": 2, "min_workers": 4}, partial=True)


@pytest.mark.parametrize("length", [1, 40])
def test_a_name_is_taken_up_to_its_limit(length: int) -> None:
    assert parse({**TRAINING, "name": "a" * length}).name == "a" * length


@pytest.mark.parametrize("length", [41, 52, 53, 63, 64, 253])
def test_a_longer_name_is_refused_with_the_real_limit(length: int) -> None:
    [problem] = problems_of({**TRAINING, "name": "a" * length})
    assert problem.numbers == {"length": length, "max": 40}
