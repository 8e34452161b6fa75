"""JobSpec -> the plain values that `clusters.manifests` renders, once a place has been found."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clusters.manifests.values import (
    CheckpointValues,
    ClaimMount,
    CodeValues,
    ConcurrencyPolicy,
    ContainerValues,
    GangValues,
    HugePagesValues,
    Identity,
    PodValues,
    ProbeValues,
    ScheduleValues,
    SecretFile,
    SecretVariable,
    ServeValues,
    SetValues,
    TolerationValues,
)
from jobs.jobspec.fields import Amount, Concurrency, HugePages, JobSpec, PodSet, Probe, Toleration

GRACE_S = 120
CONCURRENCY: Mapping[Concurrency, ConcurrencyPolicy] = {"forbid": "Forbid", "allow": "Allow", "replace": "Replace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the decision and the cluster add: the device's resource name, the workers that start, their nodes.

    `plan` has one node name per rank, by which a policy pins the pods where `is_born_pinned`; where `is_grouped` the
    cluster's scheduler binds all pods of a gang of Jobs or none. `restarts` counts the attempts before this one,
    `code_image` is an image with git and a shell. `start_s` is how long the start may take once the object was opened,
    `node_labels` what the wished GPU types are called on nodes.
    """

    accelerator_resource: str
    code_image: str
    workers: int = 1
    plan: tuple[str, ...] = ()
    is_born_pinned: bool = False
    is_grouped: bool = False
    restarts: int = 0
    grace_s: int = GRACE_S
    priority_class_name: str | None = None
    start_s: int = 0
    node_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_paused: bool = False


def gang_values(spec: JobSpec, identity: Identity, place: Place) -> GangValues:
    """A training run at its place."""
    backoff_limit = spec.backoff_limit or 0
    return GangValues(
        identity=identity,
        pod=_pod(spec, place),
        workers=place.workers,
        is_gang=spec.is_gang,
        # With retries the pod starts its container again where it is; without, it stays for its logs.
        restart_policy="OnFailure" if backoff_limit else "Never",
        backoff_limit=backoff_limit,
        ttl_s=spec.ttl_s,
        deadline_s=None if spec.max_runtime_s is None else spec.max_runtime_s + place.start_s,
        labels=spec.labels,
        plan=place.plan,
        is_born_pinned=place.is_born_pinned,
        # What is no Job starts its pods again by itself, one by one.
        is_grouped=place.is_grouped and spec.is_gang and spec.workload == "job",
        sets=_sets(spec, place),
        workload="job" if spec.workload == "deployment" or spec.workload == "cronjob" else spec.workload,
        is_template=spec.workload == "cronjob",
        checkpoint=_checkpoint(spec, place),
    )


def schedule_values(spec: JobSpec, identity: Identity, place: Place) -> ScheduleValues:
    """A schedule on its cluster; its runs find their places one by one."""
    schedule = spec.schedule
    if schedule is None:
        raise ValueError("a schedule needs a cron text")
    return ScheduleValues(
        gang=gang_values(spec, identity, place),
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        concurrency=CONCURRENCY[schedule.concurrency],
        starting_deadline_s=schedule.starting_deadline_s,
        keep_succeeded=schedule.keep_succeeded,
        keep_failed=schedule.keep_failed,
        is_paused=place.is_paused,
    )


def serve_values(spec: JobSpec, identity: Identity, place: Place) -> ServeValues:
    """A service; its replicas find their places one by one."""
    return ServeValues(
        identity=identity,
        pod=_pod(spec, place),
        replicas=1 if spec.replicas is None else spec.replicas,
        port=spec.port,
        service_port=spec.service_port,
        labels=spec.labels,
        readiness=_probe(spec.readiness),
        liveness=_probe(spec.liveness),
    )


def _pod(spec: JobSpec, place: Place) -> PodValues:
    return PodValues(
        container=_container(spec),
        accelerator_resource=place.accelerator_resource,
        gpus=spec.gpus_per_worker,
        grace_s=place.grace_s,
        code=_code(spec, place),
        tolerations=tuple(_toleration(item) for item in spec.tolerations),
        priority_class_name=place.priority_class_name,
        image_pull_secret=spec.image_pull_secret,
        runtime_class=spec.runtime_class,
        node_labels=place.node_labels,
    )


def _sets(spec: JobSpec, place: Place) -> tuple[SetValues, ...]:
    sets: list[SetValues] = []
    first = place.workers
    for pod_set in spec.pod_sets:
        pod = replace(_pod(_spec_of_set(spec, pod_set), place), gpus=0)
        sets.append(SetValues(name=pod_set.name, pod=pod, count=pod_set.workers, first_rank=first))
        first += pod_set.workers
    return tuple(sets)


def _spec_of_set(spec: JobSpec, pod_set: PodSet) -> JobSpec:
    """The spec as it is for the pods of the set: their own program and size, the rest as with the workers."""
    return replace(
        spec,
        image=pod_set.image or spec.image,
        command=pod_set.command or spec.command,
        args=pod_set.args or (() if pod_set.command else spec.args),
        env={**spec.env, **pod_set.env},
        cpu=_full(pod_set.cpu, spec),
        memory=_full(pod_set.memory, spec),
        shared_memory=None,
        huge_pages=None,
    )


def _full(amount: Amount | None, spec: JobSpec) -> Amount | None:
    if amount is None or spec.qos is None:
        return amount
    return replace(amount, limit=amount.request)


def _container(spec: JobSpec) -> ContainerValues:
    amounts = {"cpu": spec.cpu, "memory": spec.memory}
    given = {name: amount for name, amount in amounts.items() if amount is not None}
    return ContainerValues(
        image=spec.image,
        command=spec.command,
        args=spec.args,
        env=spec.env,
        secret_variables=tuple(
            SecretVariable(env=item.env, name=item.name, key=item.key) for item in spec.secrets if item.env
        ),
        secret_files=tuple(
            SecretFile(name=item.name, key=item.key, path=item.mount_path) for item in spec.secrets if item.mount_path
        ),
        requests={name: amount.request for name, amount in given.items()},
        limits=_limits(given),
        claims=tuple(
            ClaimMount(claim=item.claim, path=item.mount_path, read_only=item.read_only) for item in spec.volumes
        ),
        shared_memory=spec.shared_memory,
        huge_pages=_huge_pages(spec.huge_pages),
    )


def _huge_pages(pages: HugePages | None) -> HugePagesValues | None:
    return None if pages is None else HugePagesValues(size=pages.size, amount=pages.amount)


def _limits(amounts: dict[str, Amount]) -> dict[str, str]:
    return {name: amount.limit for name, amount in amounts.items() if amount.limit is not None}


def _code(spec: JobSpec, place: Place) -> CodeValues | None:
    code = spec.code
    if code is None:
        return None
    return CodeValues(image=place.code_image, url=code.git_url, ref=code.ref, path=code.path, secret=code.secret)


def _toleration(item: Toleration) -> TolerationValues:
    return TolerationValues(
        key=item.key, operator=item.operator, value=item.value, effect=item.effect, seconds=item.seconds
    )


def _checkpoint(spec: JobSpec, place: Place) -> CheckpointValues | None:
    checkpoint = spec.checkpoint
    if checkpoint is None:
        return None
    return CheckpointValues(path=checkpoint.path, interval_s=checkpoint.interval_s, restarts=place.restarts)


def _probe(probe: Probe | None) -> ProbeValues | None:
    if probe is None:
        return None
    return ProbeValues(
        path=probe.path,
        port=probe.port,
        delay_s=probe.delay_s,
        period_s=probe.period_s,
        timeout_s=probe.timeout_s,
        failure_threshold=probe.failure_threshold,
    )
