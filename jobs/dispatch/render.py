"""A job and its attempt -> the objects that are sent to the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.conf import settings

from clusters.k8s.values import JsonObject
from clusters.manifests import gang, names, schedule, serve
from clusters.manifests.values import GangValues, Identity
from clusters.models import Dispatch, ResourceFlavor
from jobs.dispatch import limits
from jobs.dispatch.view import View, is_adopted
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values, schedule_values, serve_values
from jobs.models import Attempt, Job

_KINDS: Mapping[str, str] = {
    "Job": "jobs",
    "CronJob": "cronjobs",
    "Pod": "pods",
    "StatefulSet": "statefulsets",
    "Deployment": "deployments",
    "Service": "services",
    "PodGroup": "podgroups",
}


def main_object(view: View) -> JsonObject:
    """The object that the attempt is: a Job, a CronJob, a Pod, a StatefulSet or a Deployment."""
    return _objects(view)[0][1]


def owned_objects(view: View) -> list[tuple[str, JsonObject]]:
    """What goes when the main object goes: its owner reference is by uid, so a namesake never inherits them."""
    if view.is_adopted:
        return []  # the schedule has what its runs share
    (_kind, main), *rest = _objects(view)
    owner = {
        "apiVersion": main["apiVersion"],
        "kind": main["kind"],
        "name": view.attempt.object_name,
        "uid": view.attempt.object_uid,
    }
    for _kind, body in rest:
        body["metadata"]["ownerReferences"] = [owner]
    return rest


def beside_main(view: View) -> list[tuple[str, JsonObject]]:
    """What stands beside the main object, and stays when that goes."""
    return _objects(view)[1:]


def run_labels(view: View) -> Mapping[str, str]:
    """The labels by which the attempt's own objects are told from others of one schedule."""
    return names.run_labels(_identity(view.job, view.attempt))


def names_of_sets(view: View) -> list[str]:
    """The names of the Jobs of further sets of pods."""
    return [f"{view.attempt.object_name}-{each['name']}" for each in view.job.spec.get("pod_sets") or ()]


def selector(view: View) -> str:
    """The label query for all pods of the attempt."""
    return names.attempt_selector(_identity(view.job, view.attempt))


def objects_of(job: Job, attempt: Attempt, nodes: Sequence[str]) -> list[JsonObject]:
    """All objects of an attempt as they are created, the main one first; `nodes` has one name per rank."""
    spec = parse(job.spec)
    identity, place = _identity(job, attempt), _place(job, attempt, nodes)
    if is_adopted(job, attempt):
        return [_adopted_job(job, gang_values(spec, identity, place))]
    if job.is_service:
        return serve.objects(serve_values(spec, identity, place))
    if job.is_schedule:
        return schedule.objects(schedule_values(spec, identity, place))
    return gang.objects(gang_values(spec, identity, place))


def _adopted_job(job: Job, values: GangValues) -> JsonObject:
    """The Job as the cluster made it from the template of its schedule, with the labels of its run."""
    named = replace(values.identity, name=job.adopted["schedule_name"])
    body = gang.job(replace(values, identity=named, is_template=True))
    names_schedule = {names.label(named.domain, "schedule"): job.adopted["schedule"]}
    for metadata in (body["metadata"], body["spec"]["template"]["metadata"]):
        metadata["labels"] |= names_schedule
    body["metadata"] = {key: value for key, value in body["metadata"].items() if key != "annotations"}
    body["metadata"]["name"] = values.identity.name
    return body


def _objects(view: View) -> list[tuple[str, JsonObject]]:
    made = objects_of(view.job, view.attempt, [row.node.name for row in view.held])
    return [(_KINDS[str(body["kind"])], body) for body in made]


def _identity(job: Job, attempt: Attempt) -> Identity:
    return Identity(
        name=attempt.object_name,
        namespace=attempt.namespace,
        domain=settings.MUSTER_DOMAIN,
        installation=settings.MUSTER_INSTALLATION,
        run=job.uid,
        attempt=attempt.number,
        # One attempt has one author of its objects, so its number is its epoch.
        epoch=attempt.number,
        tenant=job.team.slug,
    )


def _place(job: Job, attempt: Attempt, nodes: Sequence[str]) -> Place:
    return Place(
        accelerator_resource=attempt.resource_name,
        code_image=settings.MUSTER_GIT_IMAGE,
        workers=attempt.workers,
        plan=tuple(nodes),
        is_born_pinned=attempt.dispatch == Dispatch.BORN_PINNED,
        is_grouped=attempt.is_grouped,
        restarts=attempt.number - 1,
        start_s=int(limits.GATHER_S + limits.START_S),
        node_labels=_node_labels(job.flavor_ids),
        is_paused=job.is_paused,
    )


def _node_labels(flavor_ids: Sequence[int]) -> Mapping[str, tuple[str, ...]]:
    """What the GPU types that a person named are called on nodes, by label."""
    if not flavor_ids:
        return {}
    labels: dict[str, tuple[str, ...]] = {}
    for flavor in ResourceFlavor.objects.filter(pk__in=flavor_ids).order_by("rank", "name"):
        labels[flavor.label_key] = (*labels.get(flavor.label_key, ()), flavor.label_value)
    return labels
