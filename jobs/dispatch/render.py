"""A job and its attempt -> the objects that are sent to the cluster."""

from collections.abc import Mapping

from django.conf import settings

from clusters.k8s.values import JsonObject
from clusters.manifests import gang, names, serve
from clusters.manifests.values import Identity
from jobs.dispatch.view import View
from jobs.jobspec.checks import parse
from jobs.jobspec.manifest_out import Place, gang_values, serve_values

_KINDS: Mapping[str, str] = {"Job": "jobs", "Deployment": "deployments", "Service": "services"}


def main_object(view: View) -> JsonObject:
    """The object that the attempt is: a Job, or a Deployment."""
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


def selector(view: View) -> str:
    """The label query for all pods of the attempt."""
    return names.attempt_selector(_identity(view))


def _objects(view: View) -> list[tuple[str, JsonObject]]:
    spec = parse(view.job.spec)
    identity, place = _identity(view), _place(view)
    if view.job.is_service:
        made = serve.objects(serve_values(spec, identity, place))
    else:
        made = gang.objects(gang_values(spec, identity, place))
    return [(_KINDS[str(body["kind"])], body) for body in made]


def _identity(view: View) -> Identity:
    return Identity(
        name=view.attempt.object_name,
        namespace=view.attempt.namespace,
        domain=settings.MUSTER_DOMAIN,
        installation=settings.MUSTER_INSTALLATION,
        run=view.job.uid,
        attempt=view.attempt.number,
        # One attempt has one author of its objects, so its number is its epoch.
        epoch=view.attempt.number,
        tenant=view.job.team.slug,
    )


def _place(view: View) -> Place:
    return Place(
        accelerator_resource=view.attempt.resource_name,
        code_image=settings.MUSTER_GIT_IMAGE,
        workers=view.attempt.workers,
        plan=tuple(row.node.name for row in view.held),
        restarts=view.attempt.number - 1,
    )
