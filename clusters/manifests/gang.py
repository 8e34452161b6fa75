"""Training: what an attempt is made of. Mostly one Indexed Job, suspended and gated, with a headless Service."""

from clusters.manifests import names, pods, ranks, solo, stateful
from clusters.manifests.adapters import born_pinned, gates, pod_group
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import GangValues, Json, SetValues


def objects(values: GangValues) -> list[Json]:
    """All objects of the attempt in the order of their creation: the main one, then what it owns."""
    if values.workload == "pod":
        return [solo.pod(values)]
    if values.workload == "statefulset":
        return [stateful.stateful_set(values), stateful.service(values)]
    return [
        job(values),
        *([service(values)] if values.is_gang else []),
        *([group(values)] if values.is_grouped else []),
        *(job_of_set(values, each) for each in values.sets),
    ]


def job(values: GangValues) -> Json:
    """The Job, created suspended: nothing runs before it is opened and each of its pods is released."""
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": values.workers,
        "parallelism": values.workers,
        "podReplacementPolicy": "Failed",
        **_failure_policy(values),
        **({} if values.deadline_s is None else {"activeDeadlineSeconds": values.deadline_s}),
        **({} if values.ttl_s is None else {"ttlSecondsAfterFinished": values.ttl_s}),
        "template": _template(values),
    }
    plan = {born_pinned.plan_key(values.identity.domain): ",".join(values.plan)} if values.plan else {}
    metadata = {**ranks.metadata(values), "annotations": plan}
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return with_spec_hash(body, values.identity.domain)


def service(values: GangValues) -> Json:
    """The headless Service of the Job's pods, and of those of further sets."""
    identity = values.identity
    if not values.sets:
        return ranks.service(values, {names.JOB_NAME_LABEL: identity.name})
    keys = {"run": identity.run, "attempt": str(identity.attempt)}
    return ranks.service(values, {names.label(identity.domain, key): value for key, value in keys.items()})


def group(values: GangValues) -> Json:
    """The PodGroup of the pods of all sets, which has the name of their Job."""
    size = values.workers + sum(each.count for each in values.sets)
    return pod_group.group(ranks.metadata(values), size=size, priority_class_name=values.pod.priority_class_name)


def job_of_set(values: GangValues, pod_set: SetValues) -> Json:
    """The Job of further pods. It goes with the workers' Job, which owns it, and fails with its first pod."""
    identity = values.identity
    labels = {
        **ranks.labels(values),
        names.label(identity.domain, "set"): pod_set.name,
        names.label(identity.domain, "first-rank"): str(pod_set.first_rank),
    }
    hosts = [*ranks.hosts_of_sets(values), *ranks.master(values)]
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": pod_set.count,
        "parallelism": pod_set.count,
        "podReplacementPolicy": "Failed",
        **_failure_policy(values),
        "template": {
            "metadata": {"labels": labels},
            "spec": _member(
                values,
                gates.gated(
                    {
                        "subdomain": identity.name,
                        "restartPolicy": "Never",
                        **pods.pod_spec(pod_set.pod, identity.domain, env=hosts, main={}),
                    },
                    identity.domain,
                ),
            ),
        },
    }
    metadata = {**ranks.metadata(values), "name": f"{identity.name}-{pod_set.name}", "labels": labels}
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return with_spec_hash(body, identity.domain)


def _template(values: GangValues) -> Json:
    spec = _member(values, _pod_spec(values))
    template: Json = {"metadata": {"labels": ranks.labels(values)}, "spec": spec}
    if values.is_born_pinned:
        return born_pinned.with_plan(template, values.plan, values.identity.domain)
    return template


def _member(values: GangValues, pod_spec: Json) -> Json:
    return pod_group.grouped(pod_spec, values.identity.name) if values.is_grouped else pod_spec


def _failure_policy(values: GangValues) -> Json:
    if not values.is_gang:
        return {"backoffLimit": values.backoff_limit}
    # "Ignore" would replace one pod of a gang whose peers have died; gangs start again whole.
    disrupted = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"backoffLimit": 0, "podFailurePolicy": {"rules": [disrupted]}}


def _pod_spec(values: GangValues) -> Json:
    if values.is_gang:
        return ranks.pod_spec(values, {"subdomain": values.identity.name, "restartPolicy": "Never"})
    return ranks.pod_spec(values, {"restartPolicy": values.restart_policy})
