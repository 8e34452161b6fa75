"""S1 to S6: from a held place to a gang that runs there, or back again whole."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import transaction

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import AlreadyExists, GatewayError, Invalid, JsonObject, NotFound, Refused, RightMissing
from clusters.manifests import names, patches
from clusters.manifests.adapters import pod_group
from clusters.manifests.patches import NotGatedError
from clusters.models import Dispatch, NodeAccelerator, ObservedPod, Severity
from clusters.services.findings import GROUPS, Finding, write_findings
from jobs import transitions
from jobs.dispatch import limits, render, run, schedules, sets, stop
from jobs.dispatch.progress import advance
from jobs.dispatch.stop import Cause
from jobs.dispatch.view import View
from jobs.models import Allocation, Attempt, Job
from jobs.transitions import Event

Step = Attempt.Step
# How the scheduler's complaints about a volume claim are told from those about nodes.
CLAIM = "persistentvolumeclaim"
# How it begins where no node was good enough, and not only other pods of a group.
NO_NODE = re.compile(r"0/\d+ nodes are available")
# How it says which resource a node has too little of.
INSUFFICIENT = re.compile(r"Insufficient (\S+)")
# Enough to hide a server's latency, few enough for its priority and fairness.
PARALLEL_PATCHES = 8
# What stands in the FailedCreate events of the Job controller and of the StatefulSet controller.
REFUSED_PODS = ("Error creating", "failed error:")
PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})


def create(view: View, gateway: Gateway) -> None:
    """S1: create the object, suspended or gated; one that is there already is adopted if it is ours."""
    if view.is_adopted:
        return schedules.take_over(view, gateway)
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    body = render.main_object(view)
    try:
        made = gateway.create(view.kind, view.attempt.namespace, body)
    except AlreadyExists:
        made = gateway.get(view.kind, view.attempt.namespace, view.attempt.object_name)
        if not _is_same(made, body):
            return stop.begin(view, stop.again("another object has this name"))
    except (Refused, Invalid, NotFound) as refusal:
        return _refused(view, gateway, refusal)
    return advance(view, step=Step.CREATED, due_s=0, object_uid=made["metadata"]["uid"])


def attach(view: View, gateway: Gateway) -> None:
    """S2: create what the object owns (the service by which ranks or callers find it)."""
    for kind, body in render.owned_objects(view):
        try:
            gateway.create(kind, view.attempt.namespace, body)
        except AlreadyExists:
            found = gateway.get(kind, view.attempt.namespace, body["metadata"]["name"])
            if not _is_owned(found, view.attempt.object_uid):  # else made by an earlier try of this same step
                return stop.begin(view, stop.again(f"another object of {kind} has this name"))
        except (Refused, Invalid, NotFound) as refusal:
            if kind == pod_group.RESOURCE and isinstance(refusal, RightMissing | NotFound):
                return _ungrouped(view, refusal)
            return _refused(view, gateway, refusal)
    return advance(view, step=Step.ATTACHED, due_s=0)


def _ungrouped(view: View, refusal: GatewayError) -> None:
    """The cluster takes no PodGroups any more, or not there: it starts over without, until a check finds better."""
    text = str(refusal)
    finding = Finding(GROUPS, Severity.WARNING, {"is": "refused", "text": text[:300]})
    write_findings(cluster=view.cluster, findings=[finding], is_whole_round=False)
    return stop.begin(view, stop.again(f"the cluster does not take the gang as a PodGroup: {text}"))


def open_gate(view: View, gateway: Gateway) -> None:
    """S3: let the controller create the pods; each stands at its gate, or is born at its place."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if _is_born_pinned(view) and (fallen := _fallen_node(view.held)):  # later no gate holds them
        return stop.begin(view, stop.again(f"node {fallen.node.name} changed"))
    if trouble := sets.open_all(view, gateway):
        return stop.begin(view, stop.again(trouble))
    with transaction.atomic():
        advance(view, step=Step.GATHERING, due_s=1)
        transitions.move(view.job, frm=Job.State.ADMITTED, to=Job.State.STARTING, event=Event("starting"))
    return None


def let_gather(view: View, _gateway: Gateway) -> None:
    """S3 without a controller to open: the pods come by themselves, each to its gate."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    with transaction.atomic():
        advance(view, step=Step.GATHERING, due_s=0.5)
        transitions.move(view.job, frm=Job.State.ADMITTED, to=Job.State.STARTING, event=Event("starting"))
    return None


def gather(view: View, gateway: Gateway) -> None:
    """S4: wait until every rank has its pod at the gate and every node of the plan still stands.

    Pods that are born pinned have no gate. Where the policy has gone since the decision they do, and are released
    like any others.
    """
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if run.has_ended(view):
        return run.settle(view, gateway)
    waiting = [pod for pod in view.present if not pod.is_deleting and (pod.is_gated or _is_born_pinned(view))]
    if len({pod.rank for pod in waiting}) < view.size:
        return _still_gathering(view, gateway)
    if not any(pod.is_gated for pod in waiting):
        return advance(view, step=Step.STARTING, due_s=1)
    if fallen := _fallen_node(view.held):
        # No GPU was used, and the next snapshot sees what happened to the node: the run need not avoid it.
        return stop.begin(view, stop.again(f"node {fallen.node.name} changed"))
    return advance(view, step=Step.RELEASING, due_s=0)


def _is_born_pinned(view: View) -> bool:
    return view.attempt.dispatch == Dispatch.BORN_PINNED


def _still_gathering(view: View, gateway: Gateway) -> None:
    if run.is_deleted(view, gateway):
        return stop.begin(view, stop.again("the object was deleted on the cluster"))
    if view.step_age_s < limits.GATHER_S:
        return advance(view, due_s=_wait_s(view, limits.GATHER_S))
    warning = next((each.warning for each in (view.object, *view.others) if each and each.warning), "")
    if any(words in warning for words in REFUSED_PODS):
        return stop.begin(view, Cause(code=Job.Outcome.REFUSED, message=warning))
    return stop.begin(view, stop.again(warning or "not all pods were created"))


def release(view: View, gateway: Gateway) -> None:
    """S5: give each rank its node and take its gate away, in one patch a rank."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    domain = settings.MUSTER_DOMAIN
    listed = gateway.list("pods", view.attempt.namespace, labels=render.selector(view))
    alive = [pod for pod in listed.get("items") or () if "deletionTimestamp" not in pod["metadata"]]
    pods = {names.rank_of(pod, domain): pod for pod in alive}
    if len(pods) < view.size:
        return stop.begin(view, stop.again("a pod was deleted before the start"))
    try:
        with ThreadPoolExecutor(PARALLEL_PATCHES) as pool:
            done = list(pool.map(lambda row: release_pod(gateway, pods[row.rank], row.node.name, domain), view.held))
    except Refused as refusal:
        return stop.begin(view, Cause(code=Job.Outcome.REFUSED, message=str(refusal)))
    except GatewayError as error:
        if view.step_age_s < limits.BIND_S:
            raise
        # T2: a part of the gang may be bound, and shall not wait for the rest for ever.
        return stop.begin(view, stop.again(f"not all pods could be released: {error}"))
    if not all(done):
        return stop.begin(view, stop.again("a pod was changed on the cluster"))
    return advance(view, step=Step.STARTING, due_s=1)


def release_pod(gateway: Gateway, pod: JsonObject, node: str, domain: str) -> bool:
    """Pin one pod and open its gate; True also when an earlier try did so, False when it stands elsewhere."""
    place = ("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    try:
        gateway.patch_json(*place, patches.release(pod, node, domain))
    except NotGatedError:
        return patches.pinned_node(pod) == node
    except NotFound:
        return False
    except Invalid:
        # Another try of ours may have been faster: what counts is where the pod stands now.
        found = gateway.get(*place)
        return not names.is_gated(found, domain) and patches.pinned_node(found) == node
    return True


def confirm(view: View, gateway: Gateway) -> None:
    """S6: all pods bound where planned (T2), all running (T3)."""
    if stop.is_wanted(view):
        return stop.begin(view, stop.CANCELLED)
    if run.has_ended(view):
        return run.settle(view, gateway)
    if sets.failed(view):
        return run.other_failed(view, gateway)
    planned: dict[int | None, Allocation] = {row.rank: row for row in view.held}
    if cause := _cause_to_roll_back(view, gateway, planned):
        return stop.begin(view, cause)
    if len([pod for pod in view.present if pod.phase in ("Running", "Succeeded")]) == view.size:
        return begin_running(view)
    return _still_starting(view, planned)


def _cause_to_roll_back(view: View, gateway: Gateway, planned: Mapping[int | None, Allocation]) -> Cause | None:
    if run.is_deleted(view, gateway):
        return stop.again("the object was deleted on the cluster")
    strays = [pod for pod in view.present if pod.node_name and pod.node_name != planned[pod.rank].node.name]
    if strays:
        return stop.again(f"rank {strays[0].rank} was bound elsewhere")
    return run.lost_node(view)


def begin_running(view: View) -> None:
    """All ranks run: the clock of `max_runtime_s` starts."""
    with transaction.atomic():
        advance(view, step=Step.RUNNING, due_s=run.REVIEW_S, started_at=view.now)
        transitions.move(
            view.job,
            frm=Job.State.STARTING,
            to=Job.State.RUNNING,
            event=Event("running"),
            started_at=view.now,
            commit=run.commit_of(view),
        )


def _still_starting(view: View, planned: Mapping[int | None, Allocation]) -> None:
    unbound = [pod for pod in view.present if not pod.node_name]
    if unbound and view.step_age_s >= limits.BIND_S:
        pod = _first_told(unbound)
        return stop.begin(view, _why_unbound(view, pod, planned[pod.rank]))
    if (pulling := failed_pull(view.present)) and view.step_age_s >= limits.PULL_GRACE_S:
        return stop.begin(view, Cause(code=Job.Outcome.IMAGE_PULL, message=pulling.message, rank=pulling.rank))
    if view.step_age_s >= limits.START_S:
        late = next((pod for pod in view.present if pod.phase == "Pending"), None)
        is_mount = late is not None and "ount" in f"{late.reason} {late.message}"
        code = Job.Outcome.MOUNT if is_mount else Job.Outcome.TIMEOUT
        return stop.begin(
            view, Cause(code=code, message=late.message if late else "", rank=late.rank if late else None)
        )
    return advance(view, due_s=_wait_s(view, limits.BIND_S, limits.PULL_GRACE_S, limits.START_S))


def _wait_s(view: View, *ends_s: float) -> float:
    """When to look again although nothing is observed: soon, or when the next of the limits has passed."""
    left = [end_s - view.step_age_s for end_s in ends_s if end_s > view.step_age_s]
    return max(0.5, min([limits.WAIT_S, *left]))


def _why_unbound(view: View, pod: ObservedPod, row: Allocation) -> Cause:
    """T2 has passed: tell what is no fault of the node, and otherwise try again elsewhere."""
    if gates := ", ".join(pod.foreign_gates):
        return stop.again(f"rank {pod.rank} waits at a gate that is not ours: {gates}")
    if CLAIM in pod.message.lower():  # missing or unbound on whichever node
        return Cause(code=Job.Outcome.MOUNT, message=pod.message, rank=pod.rank)
    if resource := _short_everywhere(view, pod):
        message = f"{resource} is short on each of {limits.SHORT_TRIES} nodes that were tried: {pod.message}"
        return Cause(code=Job.Outcome.REFUSED, message=message, rank=pod.rank)
    is_told = not view.attempt.is_grouped or NO_NODE.match(pod.message)
    return stop.again(pod.message or "not bound", node=row.node if is_told else None)


def _first_told(unbound: Sequence[ObservedPod]) -> ObservedPod:
    """The pod that holds the others up. Of a PodGroup all wait for it, and only say that they do."""
    return next((pod for pod in unbound if pod.foreign_gates or NO_NODE.match(pod.message)), unbound[0])


def _short_everywhere(view: View, pod: ObservedPod) -> str:
    """Return a resource that the cycle does not plan, and that this attempt and those before it found too short."""
    planned = {"cpu", "memory", "pods", view.attempt.resource_name}
    told: set[str] = {name.rstrip(".,") for name in INSUFFICIENT.findall(pod.message)}
    for resource in sorted(told - planned):
        before = view.job.attempts.filter(stop_message__contains=f"Insufficient {resource}").count()
        if before + 1 >= limits.SHORT_TRIES:
            return resource
    return ""


def failed_pull(pods: Sequence[ObservedPod]) -> ObservedPod | None:
    """The first pod whose image cannot be pulled."""
    return next((pod for pod in pods if pod.reason.removeprefix("Init:") in PULL_REASONS), None)


def _refused(view: View, gateway: Gateway, refusal: GatewayError) -> None:
    if isinstance(refusal, RightMissing) and view.step_age_s < _patience_s(gateway):
        return advance(view, due_s=2)
    return stop.begin(view, Cause(code=Job.Outcome.REFUSED, message=_why_refused(view, gateway, refusal)))


def _patience_s(gateway: Gateway) -> float:
    """How long a missing right may be a server's that has not read its roles yet."""
    return limits.RIGHTS_S if gateway.is_ready() else limits.GATHER_S


def _why_refused(view: View, gateway: Gateway, refusal: GatewayError) -> str:
    """Name the namespace and what helps: where it is not there, an account with few rights is told 403, not 404."""
    if not isinstance(refusal, RightMissing | NotFound):
        return str(refusal)
    namespace, cluster = view.attempt.namespace, view.attempt.cluster.name
    is_gone = isinstance(refusal, NotFound) or _is_missing(gateway, namespace)
    what = "is missing" if is_gone else "is missing, or Muster has no rights in it"
    return (
        f"The namespace {namespace} {what} on {cluster}: the cluster's administrator applies its YAML "
        f"(page of the cluster, Spaces). {refusal}"
    )


def _is_missing(gateway: Gateway, namespace: str) -> bool:
    """Whether that is known for sure; not every account may look."""
    try:
        gateway.get("namespaces", "", namespace)
    except NotFound:
        return True
    except GatewayError:
        return False
    return False


def _is_same(found: JsonObject, wanted: JsonObject) -> bool:
    """Whether an object of our name was made by an earlier try of this very attempt."""
    key = names.label(settings.MUSTER_DOMAIN, "spec-hash")
    have, want = ((body["metadata"].get("annotations") or {}).get(key) for body in (found, wanted))
    return bool(want) and have == want


def _is_owned(found: JsonObject, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in found["metadata"].get("ownerReferences") or ())


def _fallen_node(held: Sequence[Allocation]) -> Allocation | None:
    """A node of the plan that was lost, closed or overbooked between the decision and the release."""
    overbooked = set(
        NodeAccelerator.objects.filter(node__in=[row.node_id for row in held])
        .extra(where=["held + clusters_nodeaccelerator.foreign > allocatable"])
        .values_list("node_id", "flavor_id")
    )
    for row in held:
        node = row.node
        if node.gone_at or node.uid != row.node_uid or not node.is_ready or node.is_closed:
            return row
        if (row.node_id, row.flavor_id) in overbooked:
            return row
    return None
