"""Rules between the fields of a JobSpec, and warnings about what is legal but odd."""

import re
from collections.abc import Iterator, Sequence

from clusters import quantities
from jobs.jobspec.fields import Amount, JobSpec, PodSet
from jobs.jobspec.problem import Problem

CODE_PATH = "/workspace"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  the path inside the container
HUGE_PAGES_PATH = "/dev/hugepages"
SYSTEM_PATHS = ("/dev", "/proc", "/sys")
# Set for every worker of a gang; another value would break the rendezvous.
GANG_VARIABLES = (
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
)

# With further sets of pods: by these the containers know the hosts of each set.
HOSTS_PREFIX = "MUSTER_HOSTS_"
# With a schedule: what the Job of this run is called.
JOB_VARIABLE = "MUSTER_JOB"
CHECKPOINT_VARIABLES = frozenset({"MUSTER_CHECKPOINT_PATH", "MUSTER_CHECKPOINT_INTERVAL_S", "MUSTER_RESTARTS"})

# What the first set, that of the workers, is called among the others.
WORKERS = "worker"

_SECRET_WORDS = re.compile(
    r"(^|[_.-])(secret|passwd|password|token|credentials?|api_?key|access_?key|private_?key)([_.-]|$)",
    re.IGNORECASE,
)
# What kubelet would replace in variables, command and arguments: "$(NAME)", and "$$" for one "$".
_EXPANDED = re.compile(r"\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)|\$\$")


def broken(spec: JobSpec) -> Iterator[Problem]:
    """Every rule between fields that the spec breaks."""
    yield from _broken_numbers(spec)
    yield from _broken_quick_run(spec)
    yield from _broken_schedule(spec)
    yield from _broken_pod_sets(spec)
    yield from _broken_shared_memory(spec)
    yield from _broken_qos(spec)
    yield from _broken_variables(spec)
    yield from _broken_mounts(spec)


def warnings(spec: JobSpec) -> tuple[Problem, ...]:
    """What is allowed but hardly meant: secrets in plain variables, lost checkpoints, expanded dollars."""
    return tuple(_warnings(spec))


def missing_claim(index: int, claim: str, clusters: Sequence[str]) -> Problem:
    """The warning about a volume whose claim some clusters do not have, where no cluster has all claims."""
    numbers = {"claim": claim, "clusters": ", ".join(clusters)}
    return Problem(field=f"volumes[{index}].claim", code="missing_claim", numbers=numbers)


def _broken_numbers(spec: JobSpec) -> Iterator[Problem]:
    if spec.kind == "inference" and spec.workers > 1:
        yield Problem(field="workers", code="only_for_training")
    if spec.min_workers > spec.workers:
        numbers = {"min_workers": spec.min_workers, "workers": spec.workers}
        yield Problem(field="min_workers", code="min_workers_above_workers", numbers=numbers)


def _broken_quick_run(spec: JobSpec) -> Iterator[Problem]:
    if spec.workload != "pod":
        return
    if spec.workers > 1:
        yield Problem(field="workers", code="one_worker_only", numbers={"workers": spec.workers})
    if spec.backoff_limit:
        yield Problem(field="backoff_limit", code="no_retries_of_pods")


def _broken_schedule(spec: JobSpec) -> Iterator[Problem]:
    # The cluster makes the Job of each run from one template, before anybody knows what is free then.
    if spec.workload == "cronjob" and spec.min_workers < spec.workers:
        yield Problem(field="min_workers", code="whole_on_schedule")


def _broken_pod_sets(spec: JobSpec) -> Iterator[Problem]:
    if not spec.pod_sets:
        return
    if spec.workload != "job":
        yield Problem(field="pod_sets", code="pod_sets_of_jobs_only")
    if spec.min_workers < spec.workers:
        yield Problem(field="min_workers", code="whole_with_pod_sets")
    taken = {WORKERS}
    for index, pod_set in enumerate(spec.pod_sets):
        if pod_set.name in taken:
            yield Problem(field=f"pod_sets[{index}].name", code="duplicate", numbers={"value": pod_set.name})
        taken.add(pod_set.name)
        for name in pod_set.env:
            if _is_reserved(spec, name):
                yield Problem(field=f"pod_sets[{index}].env.{name}", code="reserved", numbers={"value": name})
        if spec.qos is not None:
            yield from _broken_qos_of_set(spec, pod_set, f"pod_sets[{index}]")


def _broken_qos_of_set(spec: JobSpec, pod_set: PodSet, field: str) -> Iterator[Problem]:
    for name in ("cpu", "memory"):
        amount: Amount | None = getattr(pod_set, name)
        if amount is None and getattr(spec, name) is not None:
            yield Problem(field=f"{field}.{name}", code="needed_for_guaranteed")
        elif amount is not None and amount.limit is not None and _differ(amount):
            numbers = {"request": amount.request, "limit": amount.limit}
            yield Problem(field=f"{field}.{name}.limit", code="guaranteed_request_limit_differ", numbers=numbers)


def _differ(amount: Amount) -> bool:
    """Whether request and limit are two amounts; without a limit a node may be shared out."""
    return amount.limit is None or quantities.parse(amount.request) != quantities.parse(amount.limit)


def _is_reserved(spec: JobSpec, name: str) -> bool:
    """Whether we set the variable in every container of the run."""
    if spec.checkpoint is not None and name in CHECKPOINT_VARIABLES:
        return True
    if spec.workload == "cronjob" and spec.is_gang and name == JOB_VARIABLE:
        return True
    return (spec.is_gang and name in GANG_VARIABLES) or (bool(spec.pod_sets) and name.startswith(HOSTS_PREFIX))


def _broken_shared_memory(spec: JobSpec) -> Iterator[Problem]:
    if spec.shared_memory is None:
        return
    size = quantities.parse(spec.shared_memory)
    if size <= 0:
        yield Problem(field="shared_memory", code="not_above_zero", numbers={"value": spec.shared_memory})
    limit = spec.memory.limit if spec.memory else None
    if limit is not None and size > quantities.parse(limit):
        numbers = {"shared_memory": spec.shared_memory, "limit": limit}
        yield Problem(field="shared_memory", code="shared_memory_above_limit", numbers=numbers)


def _broken_qos(spec: JobSpec) -> Iterator[Problem]:
    amounts = {"cpu": spec.cpu, "memory": spec.memory}
    if spec.huge_pages is not None and not any(amounts.values()):
        yield Problem(field="huge_pages", code="huge_pages_alone")
    if spec.qos is None:
        return
    for name, amount in amounts.items():
        if amount is None:
            yield Problem(field=name, code="needed_for_guaranteed")
        elif _differ(amount):
            numbers = {"request": amount.request, "limit": amount.limit or ""}
            yield Problem(field=f"{name}.limit", code="guaranteed_request_limit_differ", numbers=numbers)


def _broken_variables(spec: JobSpec) -> Iterator[Problem]:
    places = [(f"env.{name}", name) for name in spec.env]
    places += [(f"secrets[{index}].env", item.env) for index, item in enumerate(spec.secrets) if item.env]
    taken: set[str] = set()
    for field, name in places:
        if _is_reserved(spec, name):
            yield Problem(field=field, code="reserved", numbers={"value": name})
        if name in taken:
            yield Problem(field=field, code="duplicate", numbers={"value": name})
        taken.add(name)


def _broken_mounts(spec: JobSpec) -> Iterator[Problem]:
    places = [(f"volumes[{index}].mount_path", item.mount_path) for index, item in enumerate(spec.volumes)]
    places += [
        (f"secrets[{index}].mount_path", item.mount_path) for index, item in enumerate(spec.secrets) if item.mount_path
    ]
    taken = {CODE_PATH} if spec.code else set()
    for field, path in places:
        if any(_is_within(path, system) for system in SYSTEM_PATHS):
            yield Problem(field=field, code="reserved", numbers={"value": path})
        if path in taken:
            yield Problem(field=field, code="duplicate", numbers={"value": path})
        taken.add(path)


def _warnings(spec: JobSpec) -> Iterator[Problem]:
    for name in filter(_SECRET_WORDS.search, spec.env):
        yield Problem(field=f"env.{name}", code="env_looks_secret", numbers={"name": name})
    if spec.qos is not None and spec.cpu is not None and quantities.parse(spec.cpu.request).denominator != 1:
        yield Problem(field="cpu.request", code="cores_are_shared", numbers={"cpu": spec.cpu.request})
    for field, text in _texts_of_the_container(spec):
        if _EXPANDED.search(text):
            yield Problem(field=field, code="expanded_by_kubernetes")
    path = spec.checkpoint.path if spec.checkpoint else None
    if path is not None and not any(_is_within(path, volume.mount_path) for volume in spec.volumes):
        yield Problem(field="checkpoint.path", code="checkpoint_not_on_a_volume", numbers={"path": path})


def _texts_of_the_container(spec: JobSpec) -> Iterator[tuple[str, str]]:
    yield from ((f"command[{index}]", text) for index, text in enumerate(spec.command))
    yield from ((f"args[{index}]", text) for index, text in enumerate(spec.args))
    yield from ((f"env.{name}", text) for name, text in spec.env.items())


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
