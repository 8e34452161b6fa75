"""How each kind is filled in and checked: one row per kind."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusters.simulated import defaults, resources
from clusters.simulated.errors import Cause
from clusters.simulated.resources import Obj, Resource
from clusters.simulated.validation import jobs, pods, workloads


def _nothing(_obj: Obj) -> None:
    """No defaults."""


def _no_causes(_obj: Obj) -> Iterable[Cause]:
    return ()


def _no_update_causes(_old: Obj, _new: Obj) -> Iterable[Cause]:
    return ()


@dataclass(frozen=True, slots=True)
class Strategy:
    fill: Callable[[Obj], None] = _nothing
    check: Callable[[Obj], Iterable[Cause]] = _no_causes
    check_update: Callable[[Obj, Obj], Iterable[Cause]] = _no_update_causes


def _pod_causes(pod: Obj) -> Iterable[Cause]:
    return pods.pod_spec_causes(pod["spec"])


def _pod_update_causes(old: Obj, new: Obj) -> Iterable[Cause]:
    return pods.pod_update_causes(old["spec"], new["spec"])


_REPLICATED = (workloads.replicated_causes, workloads.replicated_update_causes)
_STRATEGIES = {
    resources.PODS: Strategy(defaults.default_pod, _pod_causes, _pod_update_causes),
    resources.JOBS: Strategy(defaults.default_job, jobs.job_causes, jobs.job_update_causes),
    resources.CRON_JOBS: Strategy(defaults.default_cron_job, jobs.cron_job_causes),
    resources.DEPLOYMENTS: Strategy(defaults.default_deployment, *_REPLICATED),
    resources.STATEFUL_SETS: Strategy(
        defaults.default_stateful_set,
        workloads.stateful_causes,
        workloads.stateful_update_causes,
    ),
    resources.REPLICA_SETS: Strategy(defaults.default_replica_set, *_REPLICATED),
    resources.SERVICES: Strategy(defaults.default_service, workloads.service_causes, workloads.service_update_causes),
    resources.CLAIMS: Strategy(defaults.default_claim, workloads.claim_causes, workloads.claim_update_causes),
    resources.NAMESPACES: Strategy(defaults.default_namespace),
    resources.PRIORITY_CLASSES: Strategy(
        defaults.default_priority_class,
        workloads.priority_class_causes,
        workloads.priority_class_update_causes,
    ),
    resources.QUOTAS: Strategy(defaults.default_quota, workloads.quota_causes),
}
_PLAIN = Strategy()
# Kinds without a spec of their own.
SPECLESS = {
    resources.EVENTS,
    resources.SECRETS,
    resources.CONFIG_MAPS,
    resources.SERVICE_ACCOUNTS,
    resources.PRIORITY_CLASSES,
    resources.RUNTIME_CLASSES,
}


def strategy_of(resource: Resource) -> Strategy:
    return _STRATEGIES.get(resource, _PLAIN)
