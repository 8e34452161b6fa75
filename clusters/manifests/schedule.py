"""A schedule: one CronJob whose Jobs are born suspended, with gated pods, and wait to be taken into the queue."""

from clusters.manifests import gang, ranks
from clusters.manifests.hashing import with_spec_hash
from clusters.manifests.values import Json, ScheduleValues


def objects(values: ScheduleValues) -> list[Json]:
    """The CronJob, and the headless Service by which the ranks of each of its gangs find one another."""
    wanted = [service(values)] if values.gang.is_gang else []
    return [cron_job(values), *wanted]


def cron_job(values: ScheduleValues) -> Json:
    """The CronJob. Whether it is paused is no part of its fingerprint: that changes while it stands."""
    job = gang.job(values.gang)
    deadline = {} if values.starting_deadline_s is None else {"startingDeadlineSeconds": values.starting_deadline_s}
    spec: Json = {
        "schedule": values.cron,
        "timeZone": values.time_zone,
        "concurrencyPolicy": values.concurrency,
        "suspend": False,
        **deadline,
        "successfulJobsHistoryLimit": values.keep_succeeded,
        "failedJobsHistoryLimit": values.keep_failed,
        "jobTemplate": {"metadata": {"labels": ranks.labels(values.gang)}, "spec": job["spec"]},
    }
    body: Json = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": ranks.metadata(values.gang), "spec": spec}
    body = with_spec_hash(body, values.gang.identity.domain)
    return {**body, "spec": {**spec, "suspend": values.is_paused}}


def service(values: ScheduleValues) -> Json:
    """One Service for all gangs: their pods name it as their subdomain, and each Job has names of its own in it."""
    return ranks.service(values.gang, ranks.schedule_label(values.gang))
