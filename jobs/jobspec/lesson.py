"""The templates that a new installation starts with. Each is a JobSpec document without team and queue."""

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.jobspec.fields import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A document to start from. `title` and `description` are message ids: translate them where they are shown."""

    name: str
    title: str
    kind: Kind
    description: str
    document: Mapping[str, object]


def by_name(name: str) -> Template | None:
    """The template of this name."""
    return next((template for template in TEMPLATES if template.name == name), None)


def gettext_noop(message: str) -> str:
    """Marks a text for the message catalogue; this room knows no Django."""
    return message


PYTORCH_SINGLE = Template(
    name="pytorch-single-job",
    title=gettext_noop("PyTorch single job"),
    kind="training",
    description=gettext_noop("One worker with two GPUs, data and checkpoints on volumes, three retries."),
    document={
        "name": "pytorch-training",
        "kind": "training",
        "image": "pytorch/pytorch:2.1-cuda12.1",
        "command": ["python", "train.py"],
        "args": ["--epochs=100", "--batch-size=64"],
        "workers": 1,
        "gpus_per_worker": 2,
        "memory": {"request": "16Gi", "limit": "32Gi"},
        "volumes": [
            {"claim": "training-data", "mount_path": "/data"},
            {"claim": "model-checkpoints", "mount_path": "/checkpoints"},
        ],
        "backoff_limit": 3,
        "ttl_s": 86_400,
    },
)
HTTP_MODEL_SERVER = Template(
    name="http-model-server",
    title=gettext_noop("HTTP model server"),
    kind="inference",
    description=gettext_noop("Three replicas with one GPU each behind one address, with health checks."),
    document={
        "name": "model-inference",
        "kind": "inference",
        "labels": {"app": "inference"},
        "image": "my-model:v1.0",
        "gpus_per_worker": 1,
        "memory": {"request": "4Gi", "limit": "8Gi"},
        "replicas": 3,
        "port": 8080,
        "service_port": 80,
        "readiness": {"path": "/health", "delay_s": 30, "period_s": 10},
        "liveness": {"path": "/health", "delay_s": 60, "period_s": 30},
    },
)
PYTORCH_DISTRIBUTED = Template(
    name="pytorch-distributed",
    title=gettext_noop("PyTorch distributed (torchrun)"),
    kind="training",
    description=gettext_noop("Two workers with eight GPUs each that start together, in one rack where it can be."),
    document={
        "name": "pytorch-distributed",
        "kind": "training",
        "image": "pytorch/pytorch:2.1-cuda12.1",
        # torchrun takes nodes, ranks and the master's address from the variables of the gang.
        "command": ["torchrun", "train.py"],
        "args": ["--epochs=100", "--batch-size=64"],
        "workers": 2,
        "gpus_per_worker": 8,
        "memory": {"request": "16Gi", "limit": "32Gi"},
        "shared_memory": "8Gi",
        "topology": {"mode": "prefer", "level": "rack"},
        "volumes": [
            {"claim": "shared-data", "mount_path": "/data"},
            {"claim": "shared-checkpoints", "mount_path": "/checkpoints"},
        ],
        "backoff_limit": 0,
        "ttl_s": 86_400,
        "checkpoint": {"path": "/checkpoints", "interval_s": 600},
    },
)
QUICK_RUN = Template(
    name="quick-run",
    title=gettext_noop("Quick run"),
    kind="training",
    description=gettext_noop("One bare pod with one GPU, for a short test: no retries, gone an hour after its end."),
    document={
        "name": "quick-run",
        "kind": "training",
        "workload": "pod",
        "image": "pytorch/pytorch:2.1-cuda12.1",
        "command": ["python", "-c"],
        "args": ["import torch; print(torch.cuda.get_device_name())"],
        "workers": 1,
        "gpus_per_worker": 1,
        "max_runtime_s": 3600,
        "ttl_s": 3600,
    },
)
STABLE_RANKS = Template(
    name="stable-ranks",
    title=gettext_noop("Sharded model with stable ranks"),
    kind="training",
    description=gettext_noop("A StatefulSet: workers keep their names, start again by themselves, run until stopped."),
    document={
        "name": "sharded-model",
        "kind": "training",
        "workload": "statefulset",
        "image": "my-model:v1.0",
        "command": ["torchrun", "serve_shard.py"],
        "workers": 2,
        "gpus_per_worker": 4,
        "memory": {"request": "16Gi", "limit": "32Gi"},
        "shared_memory": "8Gi",
        "volumes": [{"claim": "shared-checkpoints", "mount_path": "/checkpoints"}],
        "backoff_limit": 3,
    },
)
RETRAINING = Template(
    name="scheduled-retraining",
    title=gettext_noop("Scheduled retraining"),
    kind="training",
    description=gettext_noop("A CronJob: every night at three a run with two GPUs, queued and charged like any other."),
    document={
        "name": "retraining",
        "kind": "training",
        "workload": "cronjob",
        "schedule": {"cron": "0 3 * * *", "time_zone": "Etc/UTC", "concurrency": "forbid"},
        "image": "pytorch/pytorch:2.1-cuda12.1",
        "command": ["python", "train.py"],
        "args": ["--epochs=10", "--batch-size=64"],
        "workers": 1,
        "gpus_per_worker": 2,
        "memory": {"request": "16Gi", "limit": "32Gi"},
        "volumes": [
            {"claim": "training-data", "mount_path": "/data"},
            {"claim": "model-checkpoints", "mount_path": "/checkpoints"},
        ],
        "backoff_limit": 3,
        "ttl_s": 86_400,
    },
)
PARAMETER_SERVER = Template(
    name="parameter-server",
    title=gettext_noop("Workers and parameter servers"),
    kind="training",
    description=gettext_noop("Two workers with four GPUs and two parameter servers without, all or none of them."),
    document={
        "name": "parameter-server",
        "kind": "training",
        "image": "my-trainer:v1.0",
        "command": ["python", "train.py"],
        "args": ["--role=worker"],
        "workers": 2,
        "gpus_per_worker": 4,
        "memory": {"request": "16Gi", "limit": "32Gi"},
        "pod_sets": [
            {
                "name": "ps",
                "workers": 2,
                "command": ["python", "train.py"],
                "args": ["--role=ps"],
                "cpu": {"request": "4"},
                "memory": {"request": "8Gi"},
            }
        ],
    },
)
TEMPLATES: tuple[Template, ...] = (
    PYTORCH_SINGLE,
    HTTP_MODEL_SERVER,
    PYTORCH_DISTRIBUTED,
    QUICK_RUN,
    STABLE_RANKS,
    PARAMETER_SERVER,
    RETRAINING,
)
