"""A StatefulSet that runs: its ranks start again by themselves, until one of them does so too often."""

from msgspec import convert

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import NotFound
from clusters.models import ObservedPod
from clusters.watch import diagnose
from clusters.watch.shapes import PodStatus
from jobs.dispatch import run, stop, verdict
from jobs.dispatch.stop import Cause
from jobs.dispatch.view import View


def review(view: View, gateway: Gateway) -> None:
    """Give up a gang of which a rank keeps ending; all else is as with any other."""
    if not stop.is_wanted(view) and (worst := _restless(view)):
        return stop.begin(view, _cause(worst, gateway))
    return run.review(view, gateway)


def _restless(view: View) -> ObservedPod | None:
    """The rank that was started again most often, where that is more often than it may be."""
    worst = max(view.present, key=lambda pod: (pod.restarts, -(pod.rank or 0)), default=None)
    allowed = view.job.spec.get("backoff_limit") or 0
    return worst if worst is not None and worst.restarts > allowed else None


def _cause(pod: ObservedPod, gateway: Gateway) -> Cause:
    """Why it ended the last time. It may be running again: what is observed of it tells how it is now."""
    try:
        status = gateway.get("pods", pod.namespace, pod.name).get("status") or {}
    except NotFound:
        status = {}
    reason, code, message = diagnose.last_end(convert(status, PodStatus))
    is_oom = reason == "OOMKilled" or code == verdict.OOM_EXIT
    outcome = verdict.Outcome.OOM if is_oom else verdict.Outcome.USER_ERROR
    text = message or f"ended {pod.restarts} times, the last time with exit code {code}"
    return Cause(code=outcome, message=text, rank=pod.rank, exit_code=code)
