"""Jobs at create, and what may change on a Job afterwards."""

from collections.abc import Iterator
from dataclasses import replace
from zoneinfo import available_timezones

from clusters.simulated.cron import parse
from clusters.simulated.errors import Cause
from clusters.simulated.resources import Obj
from clusters.simulated.store import copy_of
from clusters.simulated.validation.metadata import (
    dns_label_causes,
    immutable,
    invalid_value,
    label_causes,
    required,
    unsupported,
)
from clusters.simulated.validation.pods import pod_spec_causes

_CONCURRENCY = ("Allow", "Forbid", "Replace")
_CRON_NAME_MAX = 52
_COUNTS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)


def job_causes(job: Obj) -> Iterator[Cause]:
    spec, template = job["spec"], job["spec"]["template"]
    pod = template.get("spec") or {}
    yield from label_causes((template.get("metadata") or {}).get("labels") or {}, "spec.template.labels")
    yield from pod_spec_causes(pod, "spec.template.spec")
    for field in _COUNTS:
        if spec.get(field, 0) < 0:
            yield invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
    if spec.get("activeDeadlineSeconds", 1) < 1:
        yield invalid_value("spec.activeDeadlineSeconds", spec["activeDeadlineSeconds"], "must be greater than 0")
    if pod.get("restartPolicy") not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from _mode_causes(job, spec)
    yield from _failure_policy_causes(spec, pod)


def cron_job_causes(cron_job: Obj) -> Iterator[Cause]:
    spec, name = cron_job["spec"], cron_job["metadata"].get("name", "")
    if len(name) > _CRON_NAME_MAX:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")
    yield from _time_causes(spec)
    if spec["concurrencyPolicy"] not in _CONCURRENCY:
        yield unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _CONCURRENCY)
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(field, 0) < 0:
            yield invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
    # A Job of the longest name that the controller will give it.
    job = {"metadata": {"name": f"{name}-{'0' * 10}"}, "spec": spec["jobTemplate"]["spec"]}
    for cause in job_causes(job):
        yield replace(cause, field=cause.field.replace("spec.", "spec.jobTemplate.spec.", 1))


def _time_causes(spec: Obj) -> Iterator[Cause]:
    text, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not text:
        yield required("spec.schedule")
        return
    if "TZ" in text:
        yield invalid_value("spec.schedule", text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        return
    try:
        parse(text)
    except ValueError as error:
        yield invalid_value("spec.schedule", text, str(error))
    if zone is None:
        return
    if not zone or zone.lower() == "local":
        yield invalid_value("spec.timeZone", zone, "timeZone must be an explicit time zone as defined in the IANA list")
    elif zone not in available_timezones():
        yield invalid_value("spec.timeZone", zone, f"unknown time zone {zone}")


def job_update_causes(old: Obj, new: Obj) -> Iterator[Cause]:
    before, after = old["spec"], new["spec"]
    for field in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        if before.get(field) != after.get(field):
            yield immutable(f"spec.{field}", after.get(field, "null"))
    if before.get("completions") != after.get("completions") and not _resizes_together(before, after):
        wanted = after.get("completions", "null")
        if before.get("completionMode") == "Indexed":
            yield invalid_value("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")
        else:
            yield immutable("spec.completions", wanted)
    if _fixed_template(old) != _fixed_template(new, like=old):
        yield immutable("spec.template", "core.PodTemplateSpec{...}")


def _resizes_together(before: Obj, after: Obj) -> bool:
    """An Indexed Job may change its size as long as completions stay equal to parallelism."""
    return (
        before.get("completionMode") == "Indexed"
        and after.get("completions") is not None
        and after.get("completions") == after.get("parallelism")
    )


def _fixed_template(job: Obj, like: Obj | None = None) -> Obj:
    """The template without what may change while suspended and not started: place and size of its pods."""
    template = copy_of(job["spec"]["template"])
    judged = like or job
    if not judged["spec"].get("suspend") or (judged.get("status") or {}).get("startTime"):
        return template
    meta, pod = template.get("metadata") or {}, template["spec"]
    for field in ("labels", "annotations"):
        meta.pop(field, None)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        pod.pop(field, None)
    affinity = pod.get("affinity") or {}
    affinity.pop("nodeAffinity", None)
    if not affinity:
        pod.pop("affinity", None)
    for container in (pod.get("containers") or []) + (pod.get("initContainers") or []):
        container.pop("resources", None)
    template["metadata"] = meta
    return template


def _mode_causes(job: Obj, spec: Obj) -> Iterator[Cause]:
    mode, completions = spec.get("completionMode", "NonIndexed"), spec.get("completions")
    if mode not in ("NonIndexed", "Indexed"):
        yield unsupported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode != "Indexed":
        return
    if completions is None:
        yield required("spec.completions", "when completion mode is Indexed")
    elif completions > 0:
        hostname = f"{job['metadata']['name']}-{completions - 1}"
        if list(dns_label_causes(hostname, "")):
            text = f"will not able to create pod with invalid DNS label: {hostname}"
            yield invalid_value("metadata.name", job["metadata"]["name"], text)
    if spec.get("parallelism", 1) > 100_000:
        yield invalid_value(
            "spec.parallelism",
            spec["parallelism"],
            "must be less than or equal to 100000 when completion mode is Indexed",
        )


def _failure_policy_causes(spec: Obj, pod: Obj) -> Iterator[Cause]:
    policy, replacement = spec.get("podFailurePolicy"), spec.get("podReplacementPolicy")
    path = "spec.podFailurePolicy"
    if replacement not in (None, "Failed", "TerminatingOrFailed"):
        yield unsupported("spec.podReplacementPolicy", replacement, ("Failed", "TerminatingOrFailed"))
    if policy is None:
        return
    if pod.get("restartPolicy") == "OnFailure":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid_value("spec.template.spec.restartPolicy", pod.get("restartPolicy"), text)
    if replacement not in (None, "Failed"):
        yield unsupported("spec.podReplacementPolicy", replacement, ("Failed",))
    for index, rule in enumerate(policy.get("rules") or ()):
        yield from _rule_causes(rule, f"{path}.rules[{index}]")


def _rule_causes(rule: Obj, path: str) -> Iterator[Cause]:
    action = rule.get("action")
    if action not in ("FailJob", "Ignore", "Count", "FailIndex"):
        yield unsupported(f"{path}.action", action, ("Count", "FailIndex", "FailJob", "Ignore"))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if bool(codes) == bool(conditions):
        yield invalid_value(path, "...", "specifying one of OnExitCodes and OnPodConditions is required")
    if codes and codes.get("operator") not in ("In", "NotIn"):
        yield unsupported(f"{path}.onExitCodes.operator", codes.get("operator"), ("In", "NotIn"))
    if codes and not codes.get("values"):
        yield invalid_value(f"{path}.onExitCodes.values", "[]", "at least one value is required")
    if codes and codes.get("operator") == "In" and 0 in (codes.get("values") or ()):
        yield invalid_value(f"{path}.onExitCodes.values", 0, "must not be 0 for the In operator")
