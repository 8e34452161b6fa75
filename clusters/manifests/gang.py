"""Training: what an attempt is made of. Mostly one Indexed Job, suspended and gated, with a headless Service."""

from clusters.manifests import names, ranks, solo, stateful
from clusters.manifests.adapters import born_pinned
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import GangValues, Json


def objects(values: GangValues) -> list[Json]:
    """All objects of the attempt in the order of their creation: the main one, then the Service that it owns."""
    if values.workload == "pod":
        return [solo.pod(values)]
    if values.workload == "statefulset":
        return [stateful.stateful_set(values), stateful.service(values)]
    return [job(values), *([service(values)] if values.is_gang else [])]


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
    """The headless Service of the Job's pods."""
    return ranks.service(values, {names.JOB_NAME_LABEL: values.identity.name})


def _template(values: GangValues) -> Json:
    template: Json = {"metadata": {"labels": ranks.labels(values)}, "spec": _pod_spec(values)}
    if values.is_born_pinned:
        return born_pinned.with_plan(template, values.plan, values.identity.domain)
    return template


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
