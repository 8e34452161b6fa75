"""The Jobs of a gang of several pod sets: opened together, watched together, ended together."""

import contextlib

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import Conflict, Invalid, NotFound
from clusters.manifests import patches
from clusters.models import ObservedObject
from jobs.dispatch import render
from jobs.dispatch.view import View

FAILED = frozenset({"Failed", "FailureTarget"})


def open_all(view: View, gateway: Gateway) -> str:
    """Let the controller make the pods of every set; return what is wrong, "" for nothing."""
    jobs = [(view.attempt.object_name, view.attempt.object_uid)]
    for name in render.names_of_sets(view):
        try:
            found = gateway.get("jobs", view.attempt.namespace, name)
        except NotFound:
            return "an object was deleted on the cluster"
        jobs.append((name, found["metadata"]["uid"]))
    # The workers last: whatever goes wrong before leaves their Job as it was made.
    return next(filter(None, (_open(view, gateway, name, uid) for name, uid in reversed(jobs))), "")


def _open(view: View, gateway: Gateway, name: str, uid: str) -> str:
    place = ("jobs", view.attempt.namespace, name)
    try:
        gateway.patch_json(*place, patches.unsuspend(uid))
    except Invalid:
        # A failed test says only that the state moved: look at what it is now.
        found = gateway.get(*place)
        if found["metadata"]["uid"] != uid or found["spec"].get("suspend"):
            return "the object changed on the cluster"
    except NotFound:
        return "the object was deleted on the cluster"
    return ""


def failed(view: View) -> ObservedObject | None:
    """The Job of a further set that has failed, or is about to."""
    return next((each for each in view.others if _conditions(each) & FAILED), None)


def lost(view: View, gateway: Gateway) -> str:
    """The name of a further set's Job that somebody deleted, "" for none."""
    seen = {each.name for each in view.others if not each.is_deleting}
    for name in render.names_of_sets(view):
        if name in seen:
            continue
        try:
            found = gateway.get("jobs", view.attempt.namespace, name)
        except NotFound:
            return name
        if "deletionTimestamp" in found["metadata"]:
            return name
    return ""


def end_others(view: View, gateway: Gateway) -> None:
    """Delete the Jobs beside that of the workers, which are over: nobody needs what they do any more."""
    for each in view.others:
        if not each.is_deleting and not _conditions(each) & {"Complete", "Failed"}:
            with contextlib.suppress(NotFound, Conflict):
                gateway.delete("jobs", each.namespace, each.name, uid=each.uid, propagation="Background")


def _conditions(row: ObservedObject) -> set[str]:
    conditions = row.status.get("conditions") or []
    return {condition["type"] for condition in conditions if condition.get("status") == "True"}
