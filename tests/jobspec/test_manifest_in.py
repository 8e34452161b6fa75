"""Kubernetes YAML is carried over whole or refused with the field that cannot be."""

import pytest
import yaml

from jobs.explain.problems import sentence
from jobs.jobspec import yaml_text
from jobs.jobspec.fields import HugePages, JobSpec, SecretRef, Toleration, Volume
from jobs.jobspec.manifest_in import spec_from_yaml
from jobs.jobspec.problem import SpecError
from tests.jobspec.documents import TRAINING

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: OnFailure
      containers:
      - name: c
        image: app:1
        resources: {limits: {nvidia.com/gpu: 2}}
"""
SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, labels: {app: x}}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: c
        image: app:1
        ports: [{containerPort: 9000}]
        resources: {limits: {nvidia.com/gpu: 1}}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: serve}
spec:
  selector: {app: x}
  ports: [{port: 80, targetPort: 9000}]
"""
FULL = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: elsewhere, labels: {team: x}}
spec:
  completions: 4
  parallelism: 4
  completionMode: Indexed
  activeDeadlineSeconds: 3600
  template:
    metadata: {labels: {app: y}}
    spec:
      restartPolicy: Never
      priorityClassName: research
      automountServiceAccountToken: false
      imagePullSecrets: [{name: pull}]
      tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - key: nvidia.com/gpu.product
                operator: In
                values: [NVIDIA-A100-SXM4-80GB, NVIDIA-H100-SXM5-80GB]
      containers:
      - name: c
        image: app:1
        env:
        - {name: A, value: "1"}
        - {name: EMPTY}
        - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
        resources: {limits: {nvidia.com/gpu: 8}}
        volumeMounts:
        - {name: data, mountPath: /data, readOnly: true}
        - {name: data, mountPath: /data2}
        - {name: shm, mountPath: /dev/shm}
        - {name: key, mountPath: /keys/id, subPath: id}
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: shm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}
      - {name: key, secret: {secretName: ssh}}
"""
HARDWARE = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      runtimeClassName: nvidia
      containers:
      - name: c
        image: app:1
        resources: {limits: {nvidia.com/gpu: 1, memory: 8Gi, hugepages-1Gi: 2Gi}}
        volumeMounts: [{name: pages, mountPath: /dev/hugepages}]
      volumes: [{name: pages, emptyDir: {medium: HugePages-1Gi}}]
"""
TEAM = {"team": "vision"}


def read(text: str, *edits: tuple[str, str]) -> JobSpec:
    """The spec of a text after some replacements, each of which must hit."""
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return spec_from_yaml(text, defaults=TEAM)


def test_runtime_class_and_huge_pages_are_taken_over() -> None:
    spec = read(HARDWARE)
    assert spec.runtime_class == "nvidia"
    assert spec.huge_pages == HugePages(amount="2Gi", size="1Gi")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ((", hugepages-1Gi: 2Gi", ""), "spec.template.spec.containers[0].volumeMounts[0]"),
        (("HugePages-1Gi", "HugePages-2Mi"), "spec.template.spec.containers[0].volumeMounts[0]"),
        (("mountPath: /dev/hugepages", "mountPath: /pages"), "spec.template.spec.containers[0].volumeMounts[0]"),
        (
            ("1Gi: 2Gi", "1Gi: 2Gi, hugepages-2Mi: 2Mi"),
            "spec.template.spec.containers[0].resources.limits.hugepages-1Gi",
        ),
    ],
)
def test_huge_pages_that_ours_would_not_be_are_refused(edit: tuple[str, str], field: str) -> None:
    assert (field, "cannot_carry") in faults(HARDWARE, edit)


def faults(text: str, *edits: tuple[str, str]) -> list[tuple[str, str]]:
    """Field and code of what is refused; each has its sentence."""
    with pytest.raises(SpecError) as caught:
        read(text, *edits)
    assert all(sentence(problem) for problem in caught.value.problems)
    return [(problem.field, problem.code) for problem in caught.value.problems]


# Where a line is added to JOB, and what the paths of its fields begin with.
PLACES = {
    "job": ("  backoffLimit: 2", "spec."),
    "pod": ("      restartPolicy: OnFailure", "spec.template.spec."),
    "container": ("        image: app:1", "spec.template.spec.containers[0]."),
}
CLAIM = "{name: v, persistentVolumeClaim: {claimName: c}}"


@pytest.mark.parametrize(
    ("place", "line", "field", "code"),
    [
        ("job", "podFailurePolicy: {rules: []}", "podFailurePolicy", "cannot_carry"),
        ("job", "suspend: true", "suspend", "cannot_carry"),
        ("job", "parallelism: 4", "parallelism", "completions_parallelism_differ"),
        ("job", "completionMode: Sorted", "completionMode", "bad_choice"),
        ("pod", "hostNetwork: true", "hostNetwork", "cannot_carry"),
        ("pod", "initContainers: [{}]", "initContainers", "cannot_carry"),
        ("pod", "automountServiceAccountToken: true", "automountServiceAccountToken", "cannot_carry"),
        ("pod", "nodeSelector: {disk: ssd}", "nodeSelector.disk", "cannot_carry"),
        ("pod", "volumes: [{name: v, hostPath: {path: /}}]", "volumes[0].hostPath", "cannot_carry"),
        ("pod", f"volumes: [{CLAIM}]", "volumes.v", "volume_not_mounted"),
        ("pod", "volumes: [{name: v, emptyDir: {}}]", "volumes[0].emptyDir.medium", "required"),
        ("container", "workingDir: /x", "workingDir", "cannot_carry"),
        ("container", "env: [{name: A, valueFrom: {fieldRef: {}}}]", "env[0].valueFrom.fieldRef", "cannot_carry"),
        ("container", "env: [{name: A}, {name: A}]", "env[1].name", "duplicate"),
        ("container", "volumeMounts: [{name: v, mountPath: /v}]", "volumeMounts[0]", "cannot_carry"),
        ("container", "readinessProbe: {exec: {}}", "readinessProbe.exec", "cannot_carry"),
    ],
)
def test_what_a_job_cannot_carry_is_refused_by_its_field(place: str, line: str, field: str, code: str) -> None:
    anchor, prefix = PLACES[place]
    indent = " " * (len(anchor) - len(anchor.lstrip()))
    assert (prefix + field, code) in faults(JOB, (anchor, f"{anchor}\n{indent}{line}"))


RESOURCES = "spec.template.spec.containers[0].resources"


@pytest.mark.parametrize(
    ("old", "new", "field", "code"),
    [
        ("{name: train}", "{name: train, annotations: {a: b}}", "metadata.annotations", "cannot_carry"),
        ("OnFailure", "Never", "spec.template.spec.restartPolicy", "bad_choice"),
        ("restartPolicy: OnFailure", "hostIPC: false", "spec.template.spec.restartPolicy", "required"),
        (
            "2}}",
            "2}, requests: {nvidia.com/gpu: 1}}",
            f"{RESOURCES}.requests.nvidia.com/gpu",
            "gpu_request_limit_differ",
        ),
        ("nvidia.com/gpu: 2", "cpu: 2", f"{RESOURCES}.limits.nvidia.com/gpu", "required"),
        ("nvidia.com/gpu: 2", "amd.com/gpu: 2", f"{RESOURCES}.limits.amd.com/gpu", "cannot_carry"),
        ("resources:", "resourcez:", RESOURCES, "required"),
        ("gpu: 2", "gpu: 1.5", "gpus_per_worker", "wrong_type"),
        ("gpu: 2", "gpu: 64", "gpus_per_worker", "too_big"),
        ("app:1", "App:1", "image", "bad_image"),
        ("backoffLimit: 2", "backoffLimit: yes", "backoff_limit", "wrong_type"),
    ],
)
def test_a_wrong_value_in_a_job_is_refused_by_its_field(old: str, new: str, field: str, code: str) -> None:
    assert (field, code) in faults(JOB, (old, new))


@pytest.mark.parametrize(
    ("old", "new", "field", "code"),
    [
        ("matchLabels: {app: x}", "matchLabels: {app: y}", "spec.selector", "selector_differs"),
        ("serve, labels: {app: x}", "serve, labels: {app: y}", "metadata.labels.app", "labels_differ"),
        ("spec:\n  selector: {match", "spec:\n  strategy: {}\n  selector: {match", "spec.strategy", "cannot_carry"),
        ("targetPort: 9000", "targetPort: 9001", "service.spec.ports[0].targetPort", "target_port_differs"),
        ("port: 80,", "port: 80, name: http,", "service.spec.ports[0].name", "cannot_carry"),
        ("[{port: 80, targetPort: 9000}]", "[]", "service.spec.ports", "required"),
        ("selector: {app: x}\n  ports", "type: NodePort\n  ports", "service.spec.type", "bad_choice"),
        ("selector: {app: x}\n  ports", "selector: {app: z}\n  ports", "service.spec.selector", "selector_differs"),
    ],
)
def test_what_a_server_cannot_carry_is_refused_by_its_field(old: str, new: str, field: str, code: str) -> None:
    assert (field, code) in faults(f"{SERVER}---{SERVICE}", (old, new))


def test_a_full_job_is_carried_over() -> None:
    spec = read(FULL)
    assert spec.env == {"A": "1", "EMPTY": ""}
    assert spec.secrets == (
        SecretRef(name="hub", key="token", env="HF_TOKEN"),
        SecretRef(name="ssh", key="id", mount_path="/keys/id"),
    )
    assert spec.volumes == (
        Volume(claim="data", mount_path="/data", read_only=True),
        Volume(claim="data", mount_path="/data2"),
    )
    assert spec.tolerations == (Toleration(key="spot", operator="Exists", effect="NoSchedule"),)
    assert (spec.shared_memory, spec.priority, spec.image_pull_secret) == ("4Gi", "research", "pull")
    assert spec.accelerators == ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-SXM5-80GB")
    assert (spec.workers, spec.gpus_per_worker, spec.backoff_limit) == (4, 8, 0)
    assert (spec.max_runtime_s, spec.ttl_s) == (3600, None)
    assert spec.labels == {"team": "x", "app": "y"}


def test_a_job_without_backoff_limit_means_the_default_of_kubernetes() -> None:
    assert read(JOB, ("backoffLimit: 2", "completions: 1")).backoff_limit == 6


def test_a_job_that_never_retries_keeps_its_failed_pod() -> None:
    assert read(JOB, ("backoffLimit: 2", "backoffLimit: 0"), ("OnFailure", "Never")).backoff_limit == 0


def test_gpus_may_be_written_as_text_or_number() -> None:
    text = read(
        JOB, ("{limits: {nvidia.com/gpu: 2}}", "{limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: '2'}}")
    )
    assert text.gpus_per_worker == 2


def test_a_server_alone_gets_no_service_and_kubernetes_probe_defaults() -> None:
    spec = read(SERVER, ("image: app:1", "image: app:1\n        livenessProbe: {httpGet: {port: 9000}}"))
    assert (spec.port, spec.service_port) == (9000, None)
    assert spec.liveness is not None
    assert (spec.liveness.path, spec.liveness.delay_s, spec.liveness.period_s) == ("/", 0, 10)


def test_the_service_may_come_before_its_server() -> None:
    assert read(f"{SERVICE}---{SERVER}").service_port == 80


@pytest.mark.parametrize(
    "text", [SERVICE, f"{JOB}---{JOB}", f"{JOB}---{SERVICE}", f"{JOB}---{SERVER}", "{apiVersion: v1}"]
)
def test_other_sets_of_objects_are_refused(text: str) -> None:
    assert faults(text) == [("", "unknown_objects")]


OWN = "name: vit\nimage: app:1\n"


@pytest.mark.parametrize("texts", [(OWN, OWN), (OWN, OWN, OWN), (OWN, JOB), (JOB, OWN), (OWN, SERVER, SERVICE)])
def test_a_document_of_our_own_stands_alone(texts: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as refused:
        spec_from_yaml("---\n".join(texts), defaults=TEAM)

    (problem,) = refused.value.problems
    assert problem.code == "yaml_several_specs"
    assert sentence(problem) == f"Take one JobSpec at a time; this text holds {len(texts)} documents."


CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: main
            image: app:1
            resources: {limits: {nvidia.com/gpu: 2}}
"""


def test_a_cron_job_means_what_it_means_to_kubernetes() -> None:
    spec = spec_from_yaml(CRON_JOB, defaults=TEAM)
    assert (spec.name, spec.workload, spec.gpus, spec.backoff_limit) == ("nightly", "cronjob", 2, 6)
    assert spec.schedule is not None
    assert (spec.schedule.cron, spec.schedule.concurrency, spec.schedule.keep_succeeded) == ("0 3 * * *", "allow", 3)
    text = CRON_JOB.replace("jobTemplate:", "timeZone: Europe/Berlin\n  concurrencyPolicy: Replace\n  jobTemplate:")
    schedule = spec_from_yaml(text, defaults=TEAM).schedule
    assert schedule is not None
    assert (schedule.time_zone, schedule.concurrency) == ("Europe/Berlin", "replace")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("suspend: true", ("spec.suspend", "cannot_carry")),
        ("concurrencyPolicy: Never", ("spec.concurrencyPolicy", "bad_choice")),
        ("startAt: now", ("spec.startAt", "cannot_carry")),
        ("failedJobsHistoryLimit: 0", ("schedule.keep_failed", "too_small")),
    ],
)
def test_what_a_cron_job_cannot_bring_along_is_named(line: str, fault: tuple[str, str]) -> None:
    assert faults(CRON_JOB.replace("jobTemplate:", f"{line}\n  jobTemplate:")) == [fault]


STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ranks}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: c
        image: app:1
        resources: {limits: {nvidia.com/gpu: 1}}
"""
LONE_POD = """
apiVersion: v1
kind: Pod
metadata: {name: quick}
spec:
  activeDeadlineSeconds: 600
  restartPolicy: Never
  containers:
  - name: c
    image: app:1
    resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_a_stateful_set_becomes_a_gang_with_names() -> None:
    spec = read(STATEFUL)
    assert (spec.kind, spec.workload, spec.workers, spec.labels) == ("training", "statefulset", 3, {"app": "x"})


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (("  podManagementPolicy: Parallel\n", ""), ("spec.podManagementPolicy", "parallel_only")),
        (("Parallel", "OrderedReady"), ("spec.podManagementPolicy", "parallel_only")),
        (("matchLabels: {app: x}", "matchLabels: {app: y}"), ("spec.selector", "selector_differs")),
        (("replicas: 3", "replicas: 3\n  volumeClaimTemplates: []"), ("spec.volumeClaimTemplates", "cannot_carry")),
    ],
)
def test_a_stateful_set_that_could_not_start_whole_is_refused(edit: tuple[str, str], fault: tuple[str, str]) -> None:
    assert faults(STATEFUL, edit) == [fault]


def test_a_lone_pod_is_a_quick_run() -> None:
    spec = read(LONE_POD)
    assert (spec.workload, spec.max_runtime_s, spec.backoff_limit) == ("pod", 600, 0)
    assert faults(LONE_POD, ("Never", "Always")) == [("spec.restartPolicy", "bad_choice")]


def test_our_own_document_is_read_too_and_wins_over_defaults() -> None:
    text = yaml_text.write({**TRAINING, "team": "speech", "queue": None})
    spec = spec_from_yaml(text, defaults={"team": "vision", "queue": "nightly", "priority": "research"})
    assert (spec.team, spec.queue, spec.priority) == ("speech", "nightly", "research")


BILLION_LAUGHS = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcde", "bcdef", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "yaml_empty"),
        ("# nothing", "yaml_empty"),
        ("- a", "wrong_type"),
        ("just text", "wrong_type"),
        ("a: 1\na: 2", "yaml_duplicate_key"),
        ("a: {b: 1, b: 1}", "yaml_duplicate_key"),
        ("? [a]\n: 1", "yaml_key"),
        ("a: &x 1\nb: *x", "yaml_alias"),
        (BILLION_LAUGHS, "yaml_alias"),
        ("a: !!python/object/apply:os.system [ls]", "yaml_tag"),
        ("a: !!timestamp 9999-99-99", "yaml_tag"),
        ("- " * 40, "yaml_too_deep"),
        ("[" * 200, "yaml_too_deep"),
        ("[" * 200_000, "yaml_syntax"),
        ("[" + "1," * 30_000 + "]", "yaml_too_many_values"),
        ("a: 1\n---\n" * 5, "yaml_too_many_documents"),
        ("a: " + "x" * 262_144, "yaml_too_long"),
        ("a: \x01", "yaml_characters"),
        ("a: '\ud800'", "yaml_characters"),
        ("a: [1", "yaml_syntax"),
        ("a: b: c", "yaml_syntax"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_hostile_or_broken_text_is_refused(text: str, code: str) -> None:
    assert faults(text) == [("", code)]


@pytest.mark.parametrize("text", ["yes", "no", "on", "2024-01-01", "1:30", "0x10", "010", "1_000", "<<", "="])
def test_a_plain_word_stays_a_text(text: str) -> None:
    assert yaml_text.read(f"a: {text}") == [{"a": text}]


@pytest.mark.parametrize(
    "value", ["1e3", "yes", "1.5", "null", "~", "", "2024-01-01", "1:30", "0o7", "- a", "a: b", "#x", "true"]
)
def test_a_text_that_looks_like_something_else_is_quoted(value: str) -> None:
    assert yaml.safe_load(yaml_text.write({"a": value})) == {"a": value}
    assert yaml_text.read(yaml_text.write({"a": value})) == [{"a": value}]


def test_a_long_command_stays_on_one_line() -> None:
    command = "python train.py " + "--flag=value " * 50
    assert yaml_text.write({"a": command}).count("\n") == 1


def test_arabic_and_several_lines_stay_readable() -> None:
    assert yaml_text.write({"a": "تدريب", "b": "x\ny\n"}) == "a: تدريب\nb: |\n  x\n  y\n"
