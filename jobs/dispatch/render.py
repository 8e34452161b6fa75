"""A job and its attempt -> the objects that are sent to the cluster."""

from collections.abc import Mapping, Sequence

from django.conf import settings

from clusters.k8s.values import JsonObject
from clusters.manifests import gang, names, serve
from clusters.manifests.values import Identity
from clusters.models import Dispatch, ResourceFlavor
from jobs.dispatch import limits
from jobs.dispatch.view import View
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values, serve_values
from jobs.models import Attempt, Job

_KINDS: Mapping[str, str] = {
    "Job": "jobs",
    "Pod": "pods",
    "StatefulSet": "statefulsets",
    "Deployment": "deployments",
    "Service": "services",
    "PodGroup": "podgroups",
}


def main_object(view: View) -> JsonObject:
    """The object that the attempt is: a Job, a Pod, a StatefulSet or a Deployment."""
    return _objects(view)[0][1]


def owned_objects(view: View) -> list[tuple[str, JsonObject]]:
    """What goes when the main object goes: its owner reference is by uid, so a namesake never inherits them."""
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
    if job.is_service:
        return serve.objects(serve_values(spec, identity, place))
    return gang.objects(gang_values(spec, identity, place))


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
    )


def _node_labels(flavor_ids: Sequence[int]) -> Mapping[str, tuple[str, ...]]:
    """What the GPU types that a person named are called on nodes, by label."""
    if not flavor_ids:
        return {}
    labels: dict[str, tuple[str, ...]] = {}
    for flavor in ResourceFlavor.objects.filter(pk__in=flavor_ids).order_by("rank", "name"):
        labels[flavor.label_key] = (*labels.get(flavor.label_key, ()), flavor.label_value)
    return labels
